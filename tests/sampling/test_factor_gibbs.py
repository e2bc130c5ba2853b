"""Gibbs sampling on factor graphs and Bayes nets, against enumeration, junction trees and the transfer matrix."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.graphical import Factor, FactorGraph, enumerate_joint
from lemmata.graphical.gibbs_program import SiteProgram
from lemmata.sampling import block_gibbs
from lemmata.sampling.block_gibbs import BlockProgram
from lemmata.sampling.factor_gibbs import certify_gibbs, gibbs_marginals, gibbs_on_factors
from sampling.grids import SIGMAS, asia, loop, torus, transfer_energy, within


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_marginals_are_those_of_the_model(scan):
    for number, evidence in ((0, None), (1, {3: 2}), (2, {0: 1, 1: [0.2, 1.0, 0.7], 2: [0.3, 0.9]})):
        model = loop(number=number)
        draws = gibbs_on_factors(model, 4000, evidence=evidence, scan=scan, random_state=number)
        assert draws.values.shape == (4, 4000, 5)
        assert within(draws, model, evidence) < SIGMAS
        assert draws.certify().holds, str(draws.certify())


def test_log_density_is_that_of_the_model():
    model = loop()
    draws = gibbs_on_factors(model, 10, n_chains=2, random_state=0)
    joint = enumerate_joint(model.factors, model.variables).values
    np.testing.assert_allclose(draws.log_density, np.log(joint[tuple(np.moveaxis(draws.values, 2, 0))]), rtol=1e-12)
    scaled = FactorGraph([Factor("ab", [[0.0, 900.0], [-900.0, -1.0]], log=True), Factor("a", [0.0, -3.0], log=True)])
    draws = gibbs_on_factors(scaled, 5, n_chains=1, start=[0, 1], warmup=0, random_state=0)
    assert draws.log_density.tolist() == [[900.0] * 5]


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-08")
def test_averages_of_conditionals():
    for number, evidence in ((0, None), (1, {2: 0, 4: [0.9, 0.3]})):
        model = loop(number=number)
        found, exact = gibbs_marginals(model, 6000, evidence=evidence, random_state=number), model.marginals(evidence)
        assert found.agree
        off, errors = [], []
        for name in model.variables:
            assert found.probabilities[name].sum() == pytest.approx(1, rel=1e-12)
            off.append(np.abs(found.probabilities[name] - exact[name]))
            errors.append(found.standard_errors[name])
        off, errors = np.concatenate(off), np.concatenate(errors)
        assert (off <= SIGMAS * errors + 1e-14).all()
        assert errors.max() < 0.005  # √(¼ / 24,000) = 0.003 for independent draws


@pytest.mark.slow_without_jit
def test_standard_errors_are_neither_small_nor_large():
    model, scores = loop(number=3), []
    exact = model.marginals()
    for number in range(60):
        found = gibbs_marginals(model, 400, n_chains=2, random_state=number)
        scores.append([(found.probabilities[v][0] - exact[v][0]) / found.standard_errors[v][0] for v in model.variables])
    spread = np.mean(np.square(scores))
    assert 0.8 < spread < 1.35  # 1 up to its own error: 300 squares, some of them related


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-08")
def test_energy_of_a_torus():
    model, beta = torus(6, 5, 0.3), 0.3
    draws = gibbs_on_factors(model, 3000, random_state=0)
    energy = -draws.log_density / beta  # the log of the product of factors is −β E
    expected = transfer_energy(6, 5, beta)
    error = lemmata.sampling.draws.Draws(energy[:, :, None]).mcse[0]
    assert abs(energy.mean() - expected) < SIGMAS * error
    assert error < 0.01 * abs(expected)


@pytest.mark.slow_without_jit
def test_the_same_bits_on_any_number_of_threads():
    model = torus(8, 8, 0.44)
    found = []
    for n_threads in (1, 2, 3):
        with lemmata.config(n_threads=n_threads):
            draws = gibbs_on_factors(model, 600, n_chains=3, random_state=7)
            found.append((draws.values, draws.log_density, gibbs_marginals(model, 600, random_state=7)))
    for values, logs, marginals in found[1:]:
        assert np.array_equal(values, found[0][0])
        assert np.array_equal(logs, found[0][1])
        assert all(np.array_equal(p, found[0][2].probabilities[v]) for v, p in marginals.probabilities.items())
    with lemmata.config(n_threads=2):
        again = gibbs_on_factors(model, 600, n_chains=3, random_state=8)
    assert not np.array_equal(again.values, found[0][0])


def test_a_chain_does_not_know_how_many_others_there_are():
    model = loop()
    few, many = (gibbs_on_factors(model, 50, n_chains=n, random_state=1) for n in (2, 5))
    assert np.array_equal(few.values, many.values[:2])


@pytest.mark.item("SMP-08")
def test_certificate():
    for scan in ("systematic", "random"):
        certificate = certify_gibbs(loop(), evidence={1: 2}, scan=scan)
        assert certificate.holds, str(certificate)
        assert certificate.kind == "proof"
    assert [check.name for check in certify_gibbs(asia()).failed] == ["classes"]


def test_the_certificate_refuses_other_conditionals(monkeypatch):
    from lemmata.graphical.gibbs_program import SiteProgram

    honest = SiteProgram.chance
    monkeypatch.setattr(SiteProgram, "chance", lambda self, i, x: honest(self, i, x) ** 1.01)
    assert {"stationary", "balance"} <= {check.name for check in certify_gibbs(loop()).failed}


@pytest.mark.item("SMP-08")
def test_chains_that_cannot_move_everywhere_are_refused():
    model = asia()
    for run in (gibbs_on_factors, gibbs_marginals):
        with pytest.raises(ValueError, match="The possible states fall into 2 classes"):
            run(model, 100)
    healthy = {"either": 0}  # then both diseases are out
    draws = gibbs_on_factors(model, 2000, evidence=healthy, random_state=0)
    assert within(draws, model, healthy) < SIGMAS


@pytest.mark.slow_without_jit
def test_zeros_in_a_large_graph_are_told():
    table = [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    model = FactorGraph([(pair, table) for pair in pairwise(range(30))])
    with pytest.warns(ConvergenceWarning, match="too large to see"):
        draws = gibbs_on_factors(model, 3000, random_state=0)
    assert within(draws, model) < SIGMAS


@pytest.mark.slow_without_jit
def test_a_start_that_filling_does_not_find_comes_from_the_junction_tree():
    # A counter of forty bits must end at 0 or at 40, which nobody who fills in one bit after the other foresees.
    counter = np.zeros((41, 2, 41))
    for k in range(41):
        counter[k, 0, k] = counter[k, 1, min(k + 1, 40)] = 1.0
    factors = [((("s", i), ("x", i), ("s", i + 1)), counter) for i in range(40)]
    last = np.zeros(41)
    last[[0, 40]] = 1.0
    model = FactorGraph([*factors, ([("s", 0)], np.eye(41)[0]), ([("s", 40)], last)])
    with pytest.warns(ConvergenceWarning, match="too large to see"):
        draws = gibbs_on_factors(model, 2, n_chains=1, random_state=0)
    bits = draws.values[0, 0][[i for i, name in enumerate(model.variables) if name[0] == "x"]]
    assert bits.sum() in (0, 40)


@pytest.mark.slow_without_jit
def test_chains_in_different_worlds_are_told():
    model = torus(8, 8, 1.0)
    up, down = np.ones(64, dtype=int), np.zeros(64, dtype=int)
    with pytest.warns(ConvergenceWarning, match="The chains tell different stories"):
        found = gibbs_marginals(model, 200, start=[up, down, up, down], random_state=0)
    assert not found.agree
    with pytest.raises(ValueError, match="is not to be believed"):
        gibbs_on_factors(model, 200, start=[up, down, up, down], random_state=0).mean()


def test_everything_known():
    model = loop()
    draws = gibbs_marginals(model, 10, evidence=dict.fromkeys(range(5), 1), random_state=0)
    assert all(p.tolist()[1] == 1 for p in draws.probabilities.values())
    assert all(not p.any() for p in draws.standard_errors.values())


def test_starts_by_name_and_errors():
    model = torus(3, 3, 5.0)
    draws = gibbs_on_factors(model, 3, n_chains=2, warmup=0, start=dict.fromkeys(model.variables, -1), random_state=0)
    assert not draws.values.any()
    with pytest.raises(ValueError, match="scan must be"):
        gibbs_on_factors(model, 3, scan="zigzag")
    with pytest.raises(ValueError, match="n_draws must be"):
        gibbs_on_factors(model, 0)
    with pytest.raises(ValueError, match="n_batches must be"):
        gibbs_marginals(model, 100, n_batches=1)
    with pytest.raises(ValueError, match="no state 7"):
        gibbs_on_factors(model, 3, evidence={(0, 0): 7})
    with pytest.raises(ValueError, match="more than"):
        certify_gibbs(torus(5, 5, 0.1))


@pytest.mark.parametrize("run", [gibbs_on_factors, gibbs_marginals, block_gibbs])
def test_long_runs_are_made_of_short_calls(run, monkeypatch):
    """Ctrl-C is heard between two calls of a kernel only: so none may be asked for a whole warm-up or batch."""
    asked = []

    def hear(own, x, state, n_sweeps, *rest):
        asked.append(n_sweeps)
        if len(asked) == 3:
            raise KeyboardInterrupt

    for program in (SiteProgram, BlockProgram):
        monkeypatch.setattr(program, "run", hear)
        monkeypatch.setattr(program, "average", hear)
    for warmup in (10**8, 0) if run is gibbs_marginals else (10**8,):
        asked.clear()
        with lemmata.config(n_threads=1), pytest.raises(KeyboardInterrupt):
            run(loop(), 10**9 if warmup == 0 else 100, warmup=warmup, random_state=0)
        assert max(asked) < 1000


def test_an_interrupted_average_keeps_whole_batches(monkeypatch):
    model, calls, honest = loop(), [0], SiteProgram.average

    def tire(own, *given):
        calls[0] += 1
        if calls[0] == 300:
            raise KeyboardInterrupt
        honest(own, *given)

    monkeypatch.setattr(SiteProgram, "average", tire)
    with lemmata.config(n_threads=1), pytest.warns(ConvergenceWarning, match="interrupted"):
        found = gibbs_marginals(model, 10_000, n_batches=1000, random_state=0)
    assert all(p.sum() == pytest.approx(1, rel=1e-12) for p in found.probabilities.values())
    assert 0 < found.standard_errors[0][0] < 0.05


def test_progress_of_the_warm_up_is_shown(capsys):
    gibbs_on_factors(loop(), 100, random_state=0, verbose=1)
    assert "warm-up" in capsys.readouterr().err


@pytest.mark.parametrize("run", [gibbs_on_factors, gibbs_marginals, block_gibbs])
@pytest.mark.parametrize("warmup", [-5, 2.5])
def test_the_length_of_a_warm_up_is_checked(run, warmup):
    with pytest.raises(ValueError, match="warmup must be a whole number"):
        run(loop(), 10, warmup=warmup)


def test_kind_errors():
    with pytest.raises(ValueError, match="n_batches must be a whole number"):
        gibbs_marginals(loop(), 10, n_batches=2.5)
    with pytest.raises(ValueError, match="there is nothing to prove"):
        certify_gibbs(loop(), evidence=dict.fromkeys(range(5), 1))
    words = FactorGraph([(("rain", "wet"), [[3.0, 1.0], [1.0, 2.0]])])
    with pytest.raises(ValueError, match=r"'rain' is one name: write \['rain'\]"):
        block_gibbs(words, 10, ["rain", "wet"])
