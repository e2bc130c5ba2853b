"""Write arviz.json: diagnostics of small chains by arviz_stats (pip install arviz-stats), with the draws, to three decimals."""

import json
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats


def series(seed, chains, n, coefficient, *, apart=0.0, heavy=False, integers=False):
    """Autoregressive chains, perhaps of different means, of heavy tails, or of integers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(2, size=(chains, n)) if heavy else rng.standard_normal((chains, n))
    for t in range(1, n):
        x[:, t] += coefficient * x[:, t - 1]
    x += apart * np.arange(chains)[:, None]
    return np.round(x) if integers else np.round(x, 3)


CASES = {
    "independent": series(0, 4, 120, 0.0),
    "slow": series(1, 4, 150, 0.9),
    "alternating": series(2, 3, 101, -0.7),
    "apart": series(3, 4, 80, 0.3, apart=1.0),
    "heavy tails": series(4, 4, 130, 0.5, heavy=True),
    "integers": series(5, 4, 140, 0.6, integers=True),
    "short": series(6, 2, 5, 0.0),
    "four draws": series(7, 3, 4, 0.0),
}


def measure(x):
    """Ask arviz_stats for everything."""
    axes = {"chain_axis": 0, "draw_axis": 1}
    found = {
        "rhat": array_stats.rhat(x, method="rank", **axes),
        "split_rhat": array_stats.rhat(x, method="split", **axes),
        "ess_tail": array_stats.ess(x, method="tail", prob=(0.05, 0.95), **axes),
        "mcse_mean": array_stats.mcse(x, method="mean", **axes),
        "identity": array_stats.ess(x, method="identity", **axes),
    }
    found |= {f"ess_{method}": array_stats.ess(x, method=method, **axes) for method in ("bulk", "mean", "sd")}
    found |= {f"mcse_quantile {q}": array_stats.mcse(x, method="quantile", prob=q, **axes) for q in (0.1, 0.5)}
    return {name: float(value) for name, value in found.items()}


def weights(seed, n, degrees):
    """Log weights with a tail, and what Pareto smoothing makes of them."""
    logs = np.round(np.random.default_rng(seed).standard_t(degrees, size=n), 6)  # no two equal
    smooth, k = array_stats.psislw(-logs, r_eff=1.0)
    return {"log_weights": logs.tolist(), "smooth": smooth.tolist(), "k": float(k)}


if __name__ == "__main__":
    content = {
        "chains": {name: {"draws": x.tolist(), "found": measure(x)} for name, x in CASES.items()},
        "weights": [weights(0, 60, 5), weights(1, 300, 3), weights(2, 200, 30)],
    }
    path = Path(__file__).with_name("arviz.json")
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
