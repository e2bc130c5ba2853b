"""Write statsmodels.json: regressions as statsmodels fits them, with the data.

    python tests/reference/make_statsmodels.py

Data: the public domain sets "statecrime" and "anes96" of statsmodels, and numbers drawn from a seed. Iterations are run until
they change nothing any more; before anything is written, the score of each fit must vanish to rounding.
"""

import json
import re
from pathlib import Path

import numpy as np
import statsmodels
import statsmodels.api as sm

TIGHT = {"disp": False, "tol": 1e-14, "maxiter": 200}
SCORE = 1e-9  # of the score, relative to the sizes of the terms that cancel in it


def states():
    """Murders by state, with the shares of people in cities, poor, schooled, and in households of one parent."""
    data = sm.datasets.statecrime.load_pandas().data
    return data[["urban", "poverty", "hs_grad", "single"]].to_numpy(float), data["murder"].to_numpy(float)


def voters():
    """Expected vote in 1996, with television news a week, leaning, age, education and income."""
    data = sm.datasets.anes96.load_pandas().data
    return data[["TVnews", "selfLR", "age", "educ", "income"]].to_numpy(float), data["vote"].to_numpy(float)


def seeded():
    """Columns off center and of unequal scales, a class each, and weights that are counts."""
    rng = np.random.default_rng(17)
    X = np.round(rng.normal(size=(120, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, -3.0], 6)
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ [0.8, -0.5, 0.3] + 0.2
    return X, (scores + rng.normal(size=120) > 0).astype(float), rng.integers(1, 5, 120).astype(float)


def record(fit, score, size):
    """Keep what a fit found, the constant last; its score must vanish."""
    if np.abs(score).max() > SCORE * size:
        raise ValueError(f"not at its optimum: the score is {score}, of terms of the size {size}")
    order = [*range(1, len(fit.params)), 0]
    return {"coef": list(fit.params[order]), "std_err": list(fit.bse[order]), "log_likelihood": float(fit.llf)}


def regressions(X, y, weight=None):
    """Fit what the library has a twin of."""
    A = sm.add_constant(X)
    size = np.abs(A * y[:, None]).sum()
    fits = {}
    if weight is None:
        least_squares = sm.OLS(y, A).fit()
        fits["OLS"] = record(least_squares, A.T @ least_squares.resid, size) | {"noise_variance": float(least_squares.scale)}
    if set(y) != {0.0, 1.0}:
        return fits
    if weight is None:
        for name, model in (("Logit", sm.Logit(y, A)), ("Probit", sm.Probit(y, A))):
            fit = model.fit(method="newton", **TIGHT)
            fits[name] = record(fit, model.score(fit.params), size)
    links = {"logit": "Logit", "probit": "Probit", "cloglog": "CLogLog", "cauchit": "Cauchy"}
    for name, cls in links.items():
        family = sm.families.Binomial(link=getattr(sm.families.links, cls)())
        model = sm.GLM(y, A, family=family, freq_weights=weight)
        fit = model.fit(maxiter=500, tol=1e-15, tol_criterion="params")
        fits[f"GLM {name}"] = record(fit, model.score(fit.params), size)
    return fits


def main():
    out = {"statsmodels": statsmodels.__version__}
    for name, draw in {"states": states, "voters": voters, "seeded": seeded}.items():
        X, y, *weight = draw()
        out[name] = {"X": X.tolist(), "y": y.tolist(), "fits": regressions(X, y)}
        if weight:
            out[name] |= {"weight": weight[0].tolist(), "weighted fits": regressions(X, y, weight[0])}
        for kind, fit in (out[name]["fits"] | out[name].get("weighted fits", {})).items():
            print(f"{name:7s} {kind:12s}", *(f"{c:.6g}" for c in fit["coef"]))
    text = json.dumps(out, indent=1)
    # A list of numbers takes one line: a row of data each.
    text = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)
    Path(__file__).with_name("statsmodels.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
