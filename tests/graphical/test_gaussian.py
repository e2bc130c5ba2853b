"""Gaussian messages against dense algebra, closed forms and the Kalman smoother."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lemmata.graphical import GaussianFactor, GaussianFactorGraph, linear_gaussian
from lemmata.state_space import LinearGaussianModel


def random_graph(seed, n=7, cycles=0):
    """Make a tree of vector variables of one to three entries, with some more factors that close cycles."""
    rng = np.random.default_rng(seed)
    sizes = {f"x{i}": int(rng.integers(1, 4)) for i in range(n)}
    pairs = [(f"x{i}", f"x{rng.integers(i)}") for i in range(1, n)]
    pairs += [tuple(str(name) for name in rng.choice(list(sizes), 2, replace=False)) for _ in range(cycles)]
    factors = []
    for pair in pairs:
        d = sum(sizes[name] for name in pair)
        A = rng.standard_normal((d, d))
        factors.append(GaussianFactor(pair, A @ A.T / d, rng.standard_normal(d), rng.normal(), [sizes[name] for name in pair]))
    factors.append(linear_gaussian("x0", covariance=np.eye(sizes["x0"])))
    return factors, sizes


def dense(factors, sizes):
    """Add all factors into one J, h and c."""
    names = list(sizes)
    ends = np.cumsum([sizes[name] for name in names])
    at = {name: np.arange(end - sizes[name], end) for name, end in zip(names, ends, strict=True)}
    n = ends[-1]
    J, h, c = np.zeros((n, n)), np.zeros(n), 0.0
    for factor in factors:
        index = np.concatenate([at[name] for name in factor.variables])
        J[np.ix_(index, index)] += factor.precision
        h[index] += factor.information
        c += factor.log_constant
    return J, h, c, at


@pytest.mark.item("GRM-08")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cycles", [0, 3])
def test_marginals_pairs_and_z_equal_the_joint_gaussian(seed, cycles):
    factors, sizes = random_graph(seed, cycles=cycles)
    J, h, c, at = dense(factors, sizes)
    covariance = np.linalg.inv(J)
    mean = covariance @ h
    graph = GaussianFactorGraph(factors)
    found = graph.infer()
    for name in sizes:
        np.testing.assert_allclose(found.marginals[name].mean, mean[at[name]], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(
            found.marginals[name].covariance, covariance[np.ix_(at[name], at[name])], rtol=1e-9, atol=1e-10
        )
    for one, two in [("x0", "x6"), ("x3", "x1"), ("x5", "x4")]:
        index = np.concatenate([at[one], at[two]])
        pair = graph.pairwise(one, two)
        np.testing.assert_allclose(pair.mean, mean[index], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(pair.covariance, covariance[np.ix_(index, index)], rtol=1e-9, atol=1e-10)
    log_z = c + 0.5 * (h @ mean + len(h) * np.log(2 * np.pi) - np.linalg.slogdet(J)[1])
    assert graph.log_partition() == pytest.approx(log_z, rel=1e-11)
    assert found.certify().holds, str(found.certify())
    assert found.certify().kind == "proof"


@pytest.mark.item("GRM-08")
@pytest.mark.parametrize("seed", range(5))
def test_messages_of_a_tree_give_the_marginals(seed):
    factors, sizes = random_graph(seed)
    graph = GaussianFactorGraph(factors)
    evidence = {"x2": np.arange(float(sizes["x2"]))}
    q, r = graph.messages(evidence)
    found = graph.infer(evidence)
    for name in sizes.keys() - evidence:
        told = [message for (_, n), message in r.items() if n == name]
        J, h, _ = (sum(parts) for parts in zip(*told, strict=True))
        mean = np.linalg.solve(J, h)
        np.testing.assert_allclose(found.marginals[name].mean, mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.marginals[name].covariance, np.linalg.inv(J), rtol=1e-9, atol=1e-10)
    assert len(q) == len(r)


@pytest.mark.item("GRM-08")
def test_z_is_the_same_at_every_variable_of_a_tree():
    factors, sizes = random_graph(11)
    graph = GaussianFactorGraph(factors)
    _, r = graph.messages()
    for name in sizes:
        J, h, c = (sum(parts) for parts in zip(*(message for (_, n), message in r.items() if n == name), strict=True))
        z = c + 0.5 * (h @ np.linalg.solve(J, h) + len(h) * np.log(2 * np.pi) - np.linalg.slogdet(J)[1])
        assert z == pytest.approx(graph.log_partition(), rel=1e-11)


def kalman(seed=0, T=30, n=2, p=2):
    rng = np.random.default_rng(seed)
    C, D = rng.normal(size=(n, n)) * 0.6, rng.normal(size=(p, n))
    Q, V = np.diag(rng.uniform(0.2, 1, n)) + 0.1, np.diag(rng.uniform(0.2, 1, p)) + 0.05
    m0, P0 = rng.normal(size=n), np.eye(n) * 2
    model = LinearGaussianModel(C, D, Q, V, m0, P0)
    X = rng.normal(size=(T, p)).cumsum(axis=0)
    factors = [linear_gaussian(0, offset=m0, covariance=P0)]
    for t in range(1, T + 1):
        factors += [linear_gaussian(t, {t - 1: C}, covariance=Q), linear_gaussian(("x", t), {t: D}, covariance=V)]
    return model, X, GaussianFactorGraph(factors)


@pytest.mark.item("GRM-08", "SEQ-17", "SEQ-18")
def test_a_chain_is_the_kalman_smoother_with_holes_too():
    model, X, graph = kalman()
    X[3, 0] = X[7] = np.nan  # one entry, and a whole row
    smoothed = model.smooth(X)
    evidence = {("x", t + 1): row for t, row in enumerate(X)}
    found = graph.infer(evidence)
    for t in range(len(X)):
        np.testing.assert_allclose(found.marginals[t + 1].mean, smoothed.mean[t], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.marginals[t + 1].covariance, smoothed.covariance[t], rtol=1e-9, atol=1e-10)
    assert found.log_partition == pytest.approx(float(model.log_likelihood(X)), rel=1e-11)
    # The filter at t is the graph that has seen no later row.
    filtered = model.filter(X)
    early = graph.infer({("x", t + 1): row for t, row in enumerate(X[:10])})
    np.testing.assert_allclose(early.marginals[10].mean, filtered.mean[9], rtol=1e-9)
    np.testing.assert_allclose(early.marginals[10].covariance, filtered.covariance[9], rtol=1e-9)
    assert found.certify().holds, str(found.certify())
    # What is seen has its value and no variance, and of a row with a hole the hole alone has some.
    np.testing.assert_array_equal(found.marginals["x", 1].mean, X[0])
    assert found.marginals["x", 4].covariance[0, 0] > 0
    assert found.marginals["x", 4].covariance[1, 1] == 0


@pytest.mark.item("SEQ-17")
def test_the_numbers_of_the_notes():
    factors = [linear_gaussian(0)]
    for t in (1, 2, 3):
        factors += [linear_gaussian(t, {t - 1: 1.0}), linear_gaussian(("x", t), {t: 1.0})]
    graph, x = GaussianFactorGraph(factors), {("x", 1): 1.0, ("x", 2): 2.0, ("x", 3): 1.5}
    for t, mean, variance in [(1, 0.666667, 0.666667), (2, 1.5, 0.625), (3, 1.5, 0.619048)]:
        law = graph.marginals({key: value for key, value in x.items() if key[1] <= t})[t]
        assert law.mean[0] == pytest.approx(mean, abs=6e-7)
        assert law.covariance[0, 0] == pytest.approx(variance, abs=6e-7)


def test_evidence_is_the_density_of_what_is_seen():
    # y = Ax + b + noise, both vectors: p(y) = N(A m + b, A P Aᵀ + R).
    rng = np.random.default_rng(1)
    A, b, m = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2)
    P, R = np.array([[2.0, 0.3], [0.3, 1.0]]), np.diag([0.5, 1.0, 2.0])
    graph = GaussianFactorGraph([linear_gaussian("x", offset=m, covariance=P), linear_gaussian("y", {"x": A}, b, R)])
    y = rng.normal(size=3)
    law = multivariate_normal(A @ m + b, A @ P @ A.T + R)
    assert graph.log_partition({"y": y}) == pytest.approx(law.logpdf(y), rel=1e-12)
    assert graph.log_partition() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(graph.marginals()["y"].covariance, A @ P @ A.T + R, rtol=1e-12)
    gain = P @ A.T @ np.linalg.inv(A @ P @ A.T + R)
    np.testing.assert_allclose(graph.marginals({"y": y})["x"].mean, m + gain @ (y - A @ m - b), rtol=1e-11)
    both = graph.pairwise("y", "x").covariance
    np.testing.assert_allclose(both[:3, 3:], A @ P, rtol=1e-11)
    # One entry of y only.
    part = multivariate_normal((A @ m + b)[1], (A @ P @ A.T + R)[1, 1])
    assert graph.log_partition({"y": [np.nan, y[1], np.nan]}) == pytest.approx(part.logpdf(y[1]), rel=1e-12)


@pytest.mark.parametrize("cycles", [0, 3])
def test_draws_have_the_moments(cycles):
    factors, sizes = random_graph(4, cycles=cycles)
    J, h, _, at = dense(factors, sizes)
    n = 40_000
    draws = GaussianFactorGraph(factors).sample(n, random_state=0)
    X = np.hstack([draws[name] for name in sizes])
    covariance = np.linalg.inv(J)
    sd = np.sqrt(np.diagonal(covariance))
    # 5 standard errors of ~100 numbers: a false alarm in ten thousand seeds.
    assert np.abs((X.mean(axis=0) - covariance @ h) / sd).max() < 5 / np.sqrt(n)
    got = np.cov(X.T) / np.outer(sd, sd)
    error = np.sqrt((1 + (covariance / np.outer(sd, sd)) ** 2) / n)
    assert (np.abs(got - covariance / np.outer(sd, sd)) / error).max() < 5
    again = GaussianFactorGraph(factors).sample(3, random_state=0)
    assert all(np.array_equal(again[name], GaussianFactorGraph(factors).sample(3, random_state=0)[name]) for name in at)
    given = GaussianFactorGraph(factors).sample(5, {"x1": np.ones(sizes["x1"])}, random_state=1)
    np.testing.assert_array_equal(given["x1"], 1.0)


def test_any_order_gives_the_same():
    factors, sizes = random_graph(2, cycles=2)
    graph = GaussianFactorGraph(factors)
    one, two = graph.infer(), graph.infer(order=list(sizes))
    assert one.log_partition == pytest.approx(two.log_partition, rel=1e-12)
    for name in sizes:
        np.testing.assert_allclose(one.marginals[name].covariance, two.marginals[name].covariance, rtol=1e-9, atol=1e-11)
    assert two.certify().holds


def test_several_graphs_in_one_and_units_of_all_sizes():
    factors = [
        linear_gaussian("meters", offset=5.0, covariance=1e-4),
        linear_gaussian("kilometers", {"meters": 1e-3}, covariance=1e-12),
        linear_gaussian("years", covariance=1e12),
        linear_gaussian("alone", offset=1.0),
    ]
    found = GaussianFactorGraph(factors).infer()
    assert found.marginals["kilometers"].covariance[0, 0] == pytest.approx(1e-10 + 1e-12, rel=1e-9)
    # Means lie thousands of deviations from 0: the exponent has terms of 1e7, and log Z what is left of their digits.
    assert found.log_partition == pytest.approx(0.0, abs=1e-7)
    assert found.certify().holds, str(found.certify())


def test_sabotage_is_refused():
    _, X, graph = kalman(T=6)
    evidence = {("x", t + 1): row for t, row in enumerate(X)}
    del evidence["x", 3]
    for scale in (0.99, 1.01):
        found = graph.infer(evidence)
        assert found.certify().holds
        for name in list(found.bags):
            rest, covariance = found.bags[name]
            found.bags[name] = (rest, covariance * scale)
            assert not found.certify().holds, name
            found.bags[name] = (rest, covariance)
        for name, law in list(found.marginals.items()):
            if law.mean.any():
                found.marginals[name] = law._replace(mean=law.mean * scale)
                assert not found.certify().holds, name
            if law.covariance.any():
                found.marginals[name] = law._replace(covariance=law.covariance * scale)
                assert not found.certify().holds, name
            found.marginals[name] = law
        assert found.certify().holds
        found.log_partition *= scale
        assert found.certify().failed[0].name == "log partition"


def test_a_long_chain_is_certified_at_its_whole_length():
    n = 1500
    factors = [linear_gaussian(0, covariance=4.0)] + [linear_gaussian(t, {t - 1: 0.9}, 0.1) for t in range(1, n)]
    found = GaussianFactorGraph(factors).infer({n - 1: 3.0})
    certificate = found.certify()
    assert certificate.holds
    assert certificate.kind == "proof"
    rest, covariance = found.bags[700]
    found.bags[700] = (rest, covariance * 1.01)
    assert not found.certify().holds


def test_refusals():
    walk = [linear_gaussian(t, {t - 1: 1.0}) for t in range(1, 5)]
    with pytest.raises(ValueError, match=r"no finite integral over .* add a prior"):
        GaussianFactorGraph(walk).marginals()
    # Whatever rounding leaves of a pivot that should be 0.
    for seed in range(10):
        variances = np.random.default_rng(seed).uniform(0.1, 3.0, size=12)
        loose = [linear_gaussian(t + 1, {t: 1.0}, covariance=variance) for t, variance in enumerate(variances)]
        with pytest.raises(ValueError, match="no finite integral"):
            GaussianFactorGraph(loose).marginals()
    with pytest.raises(ValueError, match="no finite integral"):
        GaussianFactorGraph([GaussianFactor(["x", "y"], [[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0])]).marginals()
    with pytest.raises(ValueError, match="not positive definite"):
        linear_gaussian("x", covariance=0.0)
    with pytest.raises(ValueError, match="must be symmetric"):
        GaussianFactorGraph([(["x", "y"], [[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0])])
    with pytest.raises(ValueError, match="must agree"):
        GaussianFactorGraph([(["x", "y"], np.eye(3), np.zeros(3))])
    with pytest.raises(ValueError, match="entries in one factor"):
        GaussianFactorGraph([(["x"], np.eye(2), np.zeros(2)), (["x"], np.eye(3), np.zeros(3))])
    graph = GaussianFactorGraph([linear_gaussian("x"), linear_gaussian("y", {"x": 1.0})])
    with pytest.raises(ValueError, match="in no factor"):
        graph.marginals({"z": 1.0})
    with pytest.raises(ValueError, match="1 finite numbers"):
        graph.marginals({"x": [1.0, 2.0]})
    with pytest.raises(ValueError, match="no variable 'z'"):
        graph.pairwise("x", "z")
    with pytest.raises(ValueError, match="repeats one"):
        graph.pairwise("x", "x")
    with pytest.raises(ValueError, match="needs 2 rows"):
        linear_gaussian("y", {"x": np.ones((3, 2))}, covariance=np.eye(2))
    ring = [
        linear_gaussian("a"),
        *(linear_gaussian(b, {a: 0.5}) for a, b in ["ab", "bc"]),
        (["c", "a"], np.eye(2), np.zeros(2)),
    ]
    with pytest.raises(ValueError, match="cycle"):
        GaussianFactorGraph(ring).messages()
    # A seen variable cuts the cycle.
    GaussianFactorGraph(ring).messages({"b": 1.0})


def test_joints_of_what_is_seen_and_what_is_not():
    graph = GaussianFactorGraph([linear_gaussian("x"), linear_gaussian("y", {"x": 1.0}), linear_gaussian("z", {"y": 2.0})])
    mean, covariance = graph.pairwise("x", "y", {"x": 1.0})
    np.testing.assert_allclose(mean, [1.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(covariance, [[0.0, 0.0], [0.0, 1.0]], atol=1e-15)
    mean, covariance = graph.joint("zxy", {"x": 1.0})
    np.testing.assert_allclose(mean, [2.0, 1.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(covariance, [[5.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0]], rtol=1e-14, atol=1e-15)
    mean, covariance = graph.joint("xy", {"x": 1.0, "y": 3.0})
    np.testing.assert_array_equal(mean, [1.0, 3.0])
    np.testing.assert_array_equal(covariance, np.zeros((2, 2)))
    wide = GaussianFactorGraph([linear_gaussian("a", covariance=np.eye(2)), linear_gaussian("b", {"a": [[1.0, 1.0]]})])
    mean, covariance = wide.joint("ab", {"a": [np.nan, 2.0]})  # one of two entries is seen
    np.testing.assert_allclose(mean, [0.0, 2.0, 2.0], rtol=1e-14)
    np.testing.assert_allclose(covariance, [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]], atol=1e-14)
    with pytest.raises(ValueError, match="at least one variable"):
        graph.joint([])


def test_what_is_no_factor():
    for offset in (np.nan, [1.0, 2.0], [[1.0]], np.inf):
        with pytest.raises(ValueError, match="offset of 'x' must be a finite number, or 1 of them"):
            linear_gaussian("x", offset=offset)
    with pytest.raises(ValueError, match="must have finite numbers"):
        linear_gaussian("y", {"x": np.nan})
    for sizes in ((1, 0), (2, -1), (0.5, 0.5)):
        with pytest.raises(ValueError, match="whole numbers of at least 1"):
            GaussianFactorGraph([GaussianFactor("xy", [[1.0]], [0.0], 0.0, sizes)])
    for constant in (np.nan, np.inf, [1.0]):
        with pytest.raises(ValueError, match=r"log_constant of factor 0 over .* must be a finite number"):
            GaussianFactorGraph([GaussianFactor("x", [[1.0]], [0.0], constant)])
