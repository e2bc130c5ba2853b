"""Write random_nets.npz: random Bayes nets of 40 variables with marginals by pyAgrum, without and with evidence.

pip install pyagrum && python tests/graphical/reference/make_pyagrum_random.py
"""

from pathlib import Path

import numpy as np
import pyagrum

HERE = Path(__file__).parent


def random_net(seed, n=40):
    """Draw parents among the last eight variables and tables with some very small chances; variables are numbers."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=n)
    parents = [sorted(rng.choice(range(max(0, i - 8), i), size=min(i, rng.integers(0, 4)), replace=False)) for i in range(n)]
    tables = [rng.dirichlet(np.full(sizes[i], 0.3), size=tuple(sizes[parents[i]])) for i in range(n)]
    evidence = {int(i): 0 for i in rng.choice(n, size=5, replace=False)}
    return sizes, parents, tables, evidence


def marginals(sizes, parents, tables, evidence):
    """Ask pyAgrum's LazyPropagation; its axes run the other way."""
    net = pyagrum.BayesNet()
    for i, size in enumerate(sizes):
        net.add(pyagrum.RangeVariable(f"v{i}", "", 0, int(size) - 1))
    for i, above in enumerate(parents):
        for p in above:
            net.addArc(f"v{p}", f"v{i}")
    for i, above in enumerate(parents):
        names = [*(f"v{p}" for p in above), f"v{i}"]
        wanted = list(reversed(net.cpt(f"v{i}").names))
        net.cpt(f"v{i}").fillWith(tables[i].transpose([names.index(name) for name in wanted]).ravel().tolist())
    engine = pyagrum.LazyPropagation(net)
    engine.setEvidence({f"v{i}": int(state) for i, state in evidence.items()})
    engine.makeInference()
    return np.concatenate([engine.posterior(f"v{i}").toarray() for i in range(len(sizes))]), engine.evidenceProbability()


if __name__ == "__main__":
    stored = {}
    for seed in range(6):
        sizes, parents, tables, evidence = random_net(seed)
        stored[f"{seed}_sizes"] = sizes
        stored[f"{seed}_parents"] = np.concatenate([[len(above), *above] for above in parents]).astype(np.int64)
        stored[f"{seed}_tables"] = np.concatenate([table.ravel() for table in tables])
        stored[f"{seed}_evidence"] = np.array(list(evidence.items()))
        stored[f"{seed}_prior"] = marginals(sizes, parents, tables, {})[0]
        stored[f"{seed}_posterior"], stored[f"{seed}_chance"] = marginals(sizes, parents, tables, evidence)
    np.savez_compressed(HERE / "random_nets.npz", **stored)
