"""Loopy belief propagation against enumeration, the junction tree and closed forms of cycles."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lemmata.graphical import Factor, FactorGraph, ImpossibleEvidence, enumerate_joint
from lemmata.graphical.loopy import SCHEDULES, loopy_marginals

every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def random_tree(seed, n_factors=7, zeros=0.0):
    """Grow a tree of factors over one to four variables of one to three states."""
    rng = np.random.default_rng(seed)
    cards, factors = [2], []
    for _ in range(n_factors):
        n_new = int(rng.integers(0, 4)) if np.prod(cards) < 3000 else 0
        scope = [int(rng.integers(len(cards))), *range(len(cards), len(cards) + n_new)]
        cards += [int(size) for size in rng.integers(1, 4, size=n_new)]
        scope = [scope[i] for i in rng.permutation(len(scope))]
        shape = [cards[v] for v in scope]
        factors.append(Factor([f"x{v}" for v in scope], rng.gamma(1.0, size=shape) * (rng.random(shape) >= zeros)))
    return FactorGraph(factors)


def ising(rows, columns, coupling, field, seed=0):
    """Make a grid of spins with random couplings and fields."""
    rng = np.random.default_rng(seed)
    spins = np.array([-1.0, 1.0])
    factors = []
    for i, j in itertools.product(range(rows), range(columns)):
        factors.append(Factor([(i, j)], np.exp(field * rng.normal() * spins)))
        for near in ((i + 1, j), (i, j + 1)):
            if near[0] < rows and near[1] < columns:
                factors.append(Factor([(i, j), near], np.exp(coupling * rng.uniform(-1, 1) * np.outer(spins, spins))))
    return FactorGraph(factors)


def ring(n, seed, states=3):
    rng = np.random.default_rng(seed)
    return FactorGraph([Factor([t, (t + 1) % n], rng.gamma(0.5, size=(states, states)) + 0.01) for t in range(n)])


@every_schedule
@pytest.mark.parametrize("seed", range(6))
def test_trees_are_exact(seed, schedule):
    model = random_tree(seed)
    joint = enumerate_joint(model.factors, model.variables)
    found = loopy_marginals(model, schedule=schedule)
    assert found.exact
    assert found.converged
    for name in model.variables:
        np.testing.assert_allclose(found.marginals[name], joint.marginal([name]).normalized().values, rtol=1e-11, atol=1e-15)
    for belief in found.factor_marginals:
        truth = joint.marginal(belief.variables).normalized().values
        np.testing.assert_allclose(belief.values, truth, rtol=1e-11, atol=1e-15)
    # Bethe's free energy is exact on a tree.
    assert found.log_partition == pytest.approx(joint.total(), rel=1e-12, abs=1e-12)
    certificate = found.certify()
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"


@pytest.mark.parametrize("seed", range(6))
def test_the_best_state_of_a_tree_and_of_ties(seed):
    model = random_tree(seed)
    joint = enumerate_joint(model.factors, model.variables)
    found = loopy_marginals(model, max_product=True)
    best = found.map()
    assert best.log_value == pytest.approx(np.log(joint.values.max()), rel=1e-12)
    assert found.log_partition == pytest.approx(np.log(joint.values.max()), rel=1e-11)
    assert model.log_value(best) == pytest.approx(best.log_value, rel=1e-12)
    for name in model.variables:
        truth = joint.maximum([name]).values
        np.testing.assert_allclose(found.marginals[name], truth / truth.sum(), rtol=1e-11)
    assert found.certify().kind == "proof"
    assert found.certify().holds
    # Equal neighbors, or different ones, all alike probable: the states must fit each other.
    same = FactorGraph([Factor([t, t + 1], np.eye(3)) for t in range(5)])
    assert len(set(loopy_marginals(same, max_product=True).map().values())) == 1
    other = FactorGraph([Factor([t, t + 1], 1 - np.eye(3)) for t in range(5)])
    states = loopy_marginals(other, max_product=True).map()
    assert all(states[t] != states[t + 1] for t in range(5))


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_takes_one_sweep_there_and_back(seed):
    found = loopy_marginals(random_tree(seed, 12))
    assert found.n_iter <= 2  # the second finds nothing to change


@every_schedule
def test_a_single_cycle_finds_the_best_state(schedule):
    right = 0
    for seed in range(12):
        model = ring(6, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # max-product on a cycle need not settle
            found = loopy_marginals(model, max_product=True, schedule=schedule)
        assert not found.exact
        if found.converged:
            right += 1
            best = enumerate_joint(model.factors, model.variables).values.max()
            assert found.map().log_value == pytest.approx(np.log(best), rel=1e-12)
            assert found.certify().kind == "local"
            assert found.certify().holds
    assert right >= 10


def test_a_cycle_has_the_beliefs_of_its_transfer_matrix():
    # Once around, a message is multiplied by the product of the tables: it settles at the leading eigenvector, and the
    # estimate of Z is the leading eigenvalue of that product; the truth is the sum of all (Weiss 2000).
    model = ring(5, 3)
    found = loopy_marginals(model, tol=1e-13)
    M = np.linalg.multi_dot([factor.values for factor in model.factors])
    eigenvalues, right = np.linalg.eig(M)
    lead = np.abs(eigenvalues).argmax()
    _, left = np.linalg.eig(M.T)
    belief = np.real(right[:, lead] * left[:, np.abs(np.linalg.eigvals(M.T)).argmax()])
    np.testing.assert_allclose(found.marginals[0], belief / belief.sum(), rtol=1e-9)
    assert found.log_partition == pytest.approx(np.log(np.real(eigenvalues[lead])), rel=1e-9)
    assert model.log_partition() == pytest.approx(np.log(np.trace(M)), rel=1e-12)


@every_schedule
def test_weakly_coupled_grids_are_close(schedule):
    model = ising(4, 4, coupling=0.3, field=0.5)
    found = loopy_marginals(model, schedule=schedule)
    truth = enumerate_joint(model.factors, model.variables)
    error = max(np.abs(found.marginals[name] - truth.marginal([name]).normalized().values).max() for name in model.variables)
    assert 0 < error < 2e-3  # the shortest cycle has four couplings: 0.3⁴ of what one does
    assert found.log_partition == pytest.approx(truth.total(), abs=5e-3)
    assert found.log_partition != pytest.approx(truth.total(), abs=1e-6)
    assert not found.exact
    certificate = found.certify()
    assert certificate.holds, str(certificate)
    assert certificate.kind == "local"


def test_schedules_and_damping_find_the_same_fixed_point():
    model = ising(6, 5, coupling=0.5, field=0.5, seed=2)
    ways = [loopy_marginals(model, schedule=s, damping=d, tol=1e-12) for s in SCHEDULES for d in (0.0, 0.3, 0.7)]
    for other in ways[1:]:
        np.testing.assert_allclose(other.messages, ways[0].messages, rtol=1e-9)
        assert other.log_partition == pytest.approx(ways[0].log_partition, rel=1e-12)


@pytest.mark.parametrize("n", [3, 4, 7])
@pytest.mark.parametrize("coupling", [0.2, 1.0])
def test_the_error_on_a_cycle_of_equal_spins_is_known(n, coupling):
    # The transfer matrix has the eigenvalues 2 cosh J and 2 sinh J; the messages see only the first.
    table = np.exp(coupling * np.outer([-1, 1], [-1, 1]))
    model = FactorGraph([Factor([t, (t + 1) % n], table) for t in range(n)])
    found = loopy_marginals(model)
    assert found.log_partition == pytest.approx(n * np.log(2 * np.cosh(coupling)), rel=1e-12)
    assert model.log_partition() - found.log_partition == pytest.approx(np.log1p(np.tanh(coupling) ** n), rel=1e-9)


def test_evidence_hard_soft_and_cutting():
    model = ising(3, 3, coupling=1.0, field=0.5)
    center = {(0, 1): 1, (1, 1): 0, (2, 1): 1}
    cut = loopy_marginals(model, center)  # two columns are left: no cycle
    assert cut.exact
    for name, truth in model.marginals(center).items():
        np.testing.assert_allclose(cut.marginals[name], truth, rtol=1e-11, atol=1e-15)
    assert cut.log_partition == pytest.approx(model.log_partition(center), rel=1e-12)
    assert cut.certify().kind == "proof"
    assert cut.certify().holds
    tree = random_tree(1)
    soft = {tree.variables[0]: [0.3, 0.9]}
    found = loopy_marginals(tree, soft)
    for name, truth in tree.marginals(soft).items():
        np.testing.assert_allclose(found.marginals[name], truth, rtol=1e-11)
    assert found.log_partition == pytest.approx(tree.log_partition(soft), rel=1e-12)
    best = loopy_marginals(model, center, max_product=True).map()
    assert all(best[name] == state for name, state in center.items())
    assert best.log_value == pytest.approx(model.map(center).log_value, rel=1e-12)


def test_labels_zeros_lonely_variables_and_constants():
    model = FactorGraph(
        [Factor([], 3.0), Factor(["a", "b"], [[0.0, 2.0], [1.0, 0.0]]), Factor(["b"], [0.5, 0.5], log=False)],
        {"a": ["no", "yes"], "alone": ["x", "y", "z"]},
    )
    found = loopy_marginals(model)
    assert found.log_partition == pytest.approx(np.log(3 * 1.5 * 3), rel=1e-14)
    np.testing.assert_allclose(found.marginals["alone"], 1 / 3, rtol=1e-15)
    assert found.certify().holds
    assert loopy_marginals(model, {"a": "yes"}, max_product=True).map() == {"a": "yes", "b": 0, "alone": "x"}
    # Large logarithms are no obstacle.
    scaled = FactorGraph([Factor(["a", "b"], np.array([[-1000.0, 5000.0], [-np.inf, 4999.0]]), log=True)])
    found = loopy_marginals(scaled)
    assert found.log_partition == pytest.approx(5000 + np.log1p(np.exp(-1)), rel=1e-15)


@pytest.mark.slow_without_jit
@every_schedule
def test_a_hub_of_thousands_does_not_underflow(schedule):
    n = 3000
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    model = FactorGraph([Factor(["hub", t], table * [1.0, 1e-3]) for t in range(n)] + [Factor(["hub"], [0.5, 0.5])])
    found = loopy_marginals(model, schedule=schedule)
    sums = (table * [1.0, 1e-3]).sum(axis=1)
    assert found.log_partition == pytest.approx(np.log(0.5) + n * np.log(sums.max()), rel=1e-12)
    np.testing.assert_allclose(found.marginals["hub"], [1.0, 0.0], atol=1e-12)
    assert found.exact


@every_schedule
@pytest.mark.parametrize("max_product", [False, True])
def test_many_messages_that_cancel_each_other(schedule, max_product):
    # The products of the first half alone, 99^200 : 1, are beyond what a float holds.
    model = FactorGraph([Factor("c", [0.99, 0.01] if i < 200 else [0.01, 0.99]) for i in range(400)])
    found = loopy_marginals(model, schedule=schedule, max_product=max_product)
    np.testing.assert_allclose(found.marginals["c"], 0.5, rtol=1e-10)
    both = 1 if max_product else 2
    assert found.log_partition == pytest.approx(200 * np.log(0.99 * 0.01) + np.log(both), rel=1e-12)
    assert found.exact
    assert found.certify().holds, str(found.certify())
    # Nor does it help to say them at other variables that must be equal: then messages are out of range.
    parts = {"a": ([0.99, 0.01], 200), "b": ([0.01, 0.99], 450), "c": ([0.99, 0.01], 250)}
    factors = [Factor([name], values) for name, (values, n) in parts.items() for _ in range(n)]
    model = FactorGraph([Factor(["a", "b"], np.eye(2)), Factor(["b", "c"], np.eye(2)), *factors])
    found = loopy_marginals(model, schedule=schedule, max_product=max_product)
    for belief in found.marginals.values():
        np.testing.assert_allclose(belief, 0.5, rtol=1e-9)
    assert found.exact
    certificate = found.certify()
    assert certificate.holds, str(certificate)
    found.messages *= np.where(np.arange(len(found.messages)) % 2, 1.01, 1.0)
    assert not found.certify().holds
    if max_product:
        tilted = FactorGraph([*model.factors, Factor("c", [0.4, 0.6])])
        best = loopy_marginals(tilted, schedule=schedule, max_product=True).map()
        assert best == {"a": 1, "b": 1, "c": 1}
        assert best.log_value == pytest.approx(tilted.log_value(best), rel=1e-14)


@pytest.mark.parametrize("max_product", [False, True])
def test_logarithms_give_the_messages_of_plain_numbers(max_product):
    with_zeros = FactorGraph([("abc", np.ones((2, 2, 2)) - np.eye(2)), ("cd", [[0.0, 1.0], [2.0, 3.0]])])
    for model in (ising(3, 3, 0.4, 0.5, seed=1), random_tree(5), with_zeros):
        plain = loopy_marginals(model, {model.variables[0]: 0}, max_product=max_product)
        # A lonely factor whose logarithms reach far.
        wide = FactorGraph([*model.factors, Factor(["far"], [0.0, -5000.0], log=True)])
        found = loopy_marginals(wide, {model.variables[0]: 0}, max_product=max_product)
        assert found._log_messages is not None
        assert plain._log_messages is None
        np.testing.assert_allclose(found.messages[:-2], plain.messages, rtol=1e-7, atol=1e-12)  # damped another way
        assert found.log_partition == pytest.approx(plain.log_partition, rel=1e-9)
        assert found.exact == plain.exact
        assert found.certify().holds, str(found.certify())
        if max_product and plain.exact:
            assert found.map().log_value == pytest.approx(plain.map().log_value, rel=1e-12)


def test_tables_beyond_the_range_of_plain_numbers():
    pair = Factor(["a", "b"], [[0.0, -900.0], [-np.inf, -1800.0]], log=True)
    model = FactorGraph([pair, Factor(["b"], [-1000.0, 0.0], log=True), Factor(["a"], [-900.0, 0.0], log=True)])
    found = loopy_marginals(model)
    joint = enumerate_joint([factor.as_log() for factor in model.factors], ["a", "b"])
    np.testing.assert_allclose(found.marginals["a"], joint.marginal(["a"]).normalized().as_linear().values, rtol=1e-11)
    assert found.log_partition == pytest.approx(joint.total(), rel=1e-14)
    assert found.exact
    huge = loopy_marginals(FactorGraph([Factor("ab", [[1e308, 1e308], [1e308, 5e307]]), Factor("bc", np.full((2, 2), 1e308))]))
    np.testing.assert_allclose(huge.marginals["a"], [4 / 7, 3 / 7], rtol=1e-12)


@every_schedule
def test_a_loose_tolerance_is_not_exact(schedule):
    model = FactorGraph([Factor((i, i + 1), [[0.9, 0.1], [0.1, 0.9]]) for i in range(10)] + [Factor((0,), [1.0, 1e-4])])
    truth = model.marginals()
    found = loopy_marginals(model, schedule=schedule, tol=0.6)
    error = max(np.abs(found.marginals[name] - truth[name]).max() for name in truth)
    assert found.exact == (error < 1e-9)
    assert found.certify().holds == (error < 1e-9)
    if schedule == "flooding":
        assert error > 0.1
    assert loopy_marginals(model, schedule=schedule).exact


def test_a_single_factor_can_be_impossible():
    for evidence in ({"a": 1}, {"a": [0.0, 3.0]}):
        for max_product in (False, True):
            with pytest.raises(ImpossibleEvidence, match="about 'a' has probability zero"):
                loopy_marginals(FactorGraph([("a", [1.0, 0.0])]), evidence, max_product=max_product)
    with pytest.raises(ImpossibleEvidence, match="The model has probability zero"):
        loopy_marginals(FactorGraph([("a", [1.0, 0.0]), ("a", [0.0, 1.0])]))
    chain = FactorGraph([Factor([t, t + 1], np.eye(2)) for t in range(300)])
    with pytest.raises(ImpossibleEvidence, match="0, 1, 2, 3, 4, 5 and 295 more has"):
        loopy_marginals(chain, {t: int(t == 200) for t in range(301)})


@every_schedule
def test_impossible_evidence_is_refused(schedule):
    model = FactorGraph([Factor([t, (t + 1) % 4], np.eye(2)) for t in range(4)])
    with pytest.raises(ImpossibleEvidence, match="probability zero"):
        loopy_marginals(model, {0: 0, 2: 1}, schedule=schedule)


def test_what_does_not_converge_says_so_and_is_refused():
    # Strong frustration on a complete graph: plain messages swing.
    rng = np.random.default_rng(0)
    spins = np.outer([-1, 1], [-1, 1])
    pairs = [Factor([i, j], np.exp(rng.normal() * 3 * spins)) for i in range(8) for j in range(i)]
    model = FactorGraph(pairs + [Factor([i], [1.0, np.exp(rng.normal())]) for i in range(8)])
    with pytest.warns(ConvergenceWarning, match="loopy belief propagation did not converge"):
        found = loopy_marginals(model, damping=0.0, schedule="flooding", max_iter=100)
    assert not found.converged
    assert not found.exact
    assert "not converged" in repr(found)
    assert not found.certify().holds
    np.testing.assert_allclose([p.sum() for p in found.marginals.values()], 1.0)


def test_an_interrupted_run_keeps_its_best_messages():
    class Impatient:
        def begin(self, iteration, state):
            if iteration == 5:
                raise KeyboardInterrupt

        def end(self, iteration, state):
            return False

    model = ising(4, 4, coupling=0.5, field=0.5)
    with pytest.warns(ConvergenceWarning, match="was interrupted after 5 iterations"):
        found = loopy_marginals(model, callbacks=[Impatient()])
    assert not found.converged
    assert found.n_iter == 5
    done = loopy_marginals(model)
    assert all(np.abs(found.marginals[name] - done.marginals[name]).max() < 0.05 for name in model.variables)


def test_the_same_bits_every_time():
    model = ising(5, 5, coupling=0.7, field=0.2, seed=5)
    for schedule in SCHEDULES:
        one, two = (loopy_marginals(model, schedule=schedule) for _ in range(2))
        assert np.array_equal(one.messages, two.messages)
        assert one.log_partition == two.log_partition


@pytest.mark.parametrize("max_product", [False, True])
def test_sabotage_is_refused(max_product):
    for model in (ising(3, 3, 0.4, 0.5, seed=1), random_tree(5)):
        found = loopy_marginals(model, max_product=max_product)
        assert found.certify().holds, str(found.certify())
        for scale in (0.99, 1.01):
            kept = found.messages.copy()
            found.messages *= np.where(np.arange(kept.size) % 2, scale, 1.0)
            assert not found.certify().holds
            found.messages = kept
            for name, belief in list(found.marginals.items()):
                found.marginals[name] = belief * np.where(np.arange(belief.size) % 2, 1.0, scale)
                assert not found.certify().holds, name
                found.marginals[name] = belief
            belief = found.factor_marginals[-1]
            found.factor_marginals[-1] = Factor(belief.variables, belief.values * scale)
            assert not found.certify().holds
            found.factor_marginals[-1] = belief
            if not max_product:
                value, found.log_partition = found.log_partition, found.log_partition * scale
                assert found.certify().failed[0].name == "log partition"
                found.log_partition = value


def test_refusals():
    model = ring(3, 0)
    with pytest.raises(ValueError, match="schedule must be one of"):
        loopy_marginals(model, schedule="random")
    with pytest.raises(ValueError, match="damping must be at least 0 and below 1"):
        loopy_marginals(model, damping=1.0)
    with pytest.raises(ValueError, match="max_product=True"):
        loopy_marginals(model).map()
    with pytest.raises(ValueError, match="no variable"):
        loopy_marginals(model, {"nobody": 1})
    for tol in (-1e-9, np.nan):
        with pytest.raises(ValueError, match="tol must be at least 0"):
            loopy_marginals(model, tol=tol)
    with pytest.raises(ValueError, match="needs a model such as FactorGraph or BayesNet, got list"):
        loopy_marginals(model.factors)
