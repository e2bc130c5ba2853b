"""Marginals of nets with 40 variables, beyond enumeration, against those of pyAgrum (reference/make_pyagrum_random.py)."""

from pathlib import Path

import numpy as np
import pytest

from lemmata.graphical import BayesNet

STORED = np.load(Path(__file__).parent / "reference" / "random_nets.npz")


@pytest.fixture(params=range(6))
def case(request):
    seed = request.param
    sizes, told = STORED[f"{seed}_sizes"], STORED[f"{seed}_parents"].tolist()
    flat, tables, parents, at = STORED[f"{seed}_tables"], {}, {}, 0
    for i in range(len(sizes)):
        count = told.pop(0)
        parents[i] = [told.pop(0) for _ in range(count)]
        shape = (*(int(sizes[p]) for p in parents[i]), int(sizes[i]))
        tables[i] = flat[at : at + np.prod(shape)].reshape(shape)
        at += np.prod(shape)
    evidence = {int(i): int(state) for i, state in STORED[f"{seed}_evidence"]}
    return BayesNet(parents, tables), evidence, [STORED[f"{seed}_{name}"] for name in ("prior", "posterior", "chance")]


@pytest.mark.item("GRM-17")
def test_marginals_are_those_of_another_engine(case):
    net, evidence, (prior, posterior, chance) = case
    np.testing.assert_allclose(np.concatenate(list(net.marginals().values())), prior, atol=1e-12)
    np.testing.assert_allclose(np.concatenate(list(net.marginals(evidence).values())), posterior, atol=1e-12)
    assert np.isclose(np.exp(net.log_partition(evidence)), chance, rtol=1e-10)
    assert net.certify(evidence=evidence, assignment=net.map(evidence)).holds
