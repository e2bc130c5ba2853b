"""Estimates from samples: scikit-learn's and SciPy's numbers, known truths, and intervals that hold what they say."""

import numpy as np
import pytest
import scipy.stats
from scipy.special import psi
from sklearn.metrics import mutual_info_score

from lemmata.probability.information import entropy, mutual_information
from lemmata.probability.information_of_samples import (
    Estimate,
    differential_entropy_of_points,
    entropy_of_labels,
    mutual_information_of_labels,
    mutual_information_of_points,
)
from lemmata.probability.tables import JointTable

P = np.array([[0.3, 0.1, 0.05], [0.05, 0.2, 0.3]])


def labels(rng, n, p=P):
    cells = rng.choice(p.size, size=n, p=p.ravel())
    return np.unravel_index(cells, p.shape)


@pytest.mark.item("PRB-19", "PRB-23")
@pytest.mark.parametrize("seed", range(4))
def test_plug_in_estimates_are_those_of_the_frequencies(seed):
    x, y = labels(np.random.default_rng(seed), 300)
    names = np.array(["a", "b", "c"])[y]
    assert entropy_of_labels(names).value == pytest.approx(entropy(np.bincount(y) / 300), rel=1e-14)
    assert entropy_of_labels(names).value == pytest.approx(scipy.stats.entropy(np.bincount(y)), rel=1e-14)
    value = mutual_information_of_labels(x, names).value
    assert value == pytest.approx(mutual_info_score(x, y), rel=1e-12)
    assert value == pytest.approx(mutual_information(JointTable.from_samples(x=x, y=names)), rel=1e-12)
    assert float(mutual_information_of_labels(x, y, base=2)) == pytest.approx(value / np.log(2), rel=1e-14)
    assert mutual_information_of_labels(y, y).value == pytest.approx(entropy_of_labels(y).value, rel=1e-14)


def test_errors_are_those_of_the_delta_method_by_differences():
    counts = np.array([50, 30, 20])
    n, p = counts.sum(), counts / counts.sum()
    gradient = -np.log(p) - 1
    covariance = (np.diag(p) - np.outer(p, p)) / n
    found = entropy_of_labels(np.repeat([0, 1, 2], counts), base=2)
    second = (3 - 1) / (2 * n**2)
    assert found.error == pytest.approx(np.sqrt(gradient @ covariance @ gradient + second) / np.log(2), rel=1e-12)
    h, p = 1e-6, P.ravel()
    rows = np.repeat(np.arange(6), (p * 1000).round().astype(int))
    slopes = [(mutual_information(_moved(i, h)) - mutual_information(_moved(i, -h))) / (2 * h) for i in range(6)]
    covariance = (np.diag(p) - np.outer(p, p)) / 1000
    found = mutual_information_of_labels(rows // 3, rows % 3)
    second = (2 - 1) * (3 - 1) / (2 * 1000**2)
    assert found.error == pytest.approx(np.sqrt(slopes @ covariance @ slopes + second), rel=1e-6)


def _moved(i, h):
    q = P.ravel().copy()
    q[i] += h
    return (q / q.sum()).reshape(P.shape)


def test_correction_removes_most_of_the_bias():
    rng, p, n = np.random.default_rng(0), np.full(8, 1 / 8), 40
    samples = rng.choice(8, size=(2000, n))
    plain = np.mean([entropy_of_labels(s).value for s in samples]) - np.log(8)
    corrected = np.mean([entropy_of_labels(s, corrected=True).value for s in samples]) - np.log(8)
    assert plain == pytest.approx(-(len(p) - 1) / (2 * n), rel=0.15)
    assert abs(corrected) < abs(plain) / 5
    pairs = rng.choice(4, size=(2000, 2, n))
    plain = np.mean([mutual_information_of_labels(*pair).value for pair in pairs])
    corrected = np.mean([mutual_information_of_labels(*pair, corrected=True).value for pair in pairs])
    assert plain == pytest.approx(9 / (2 * n), rel=0.2)  # (4 − 1)² / 2n
    assert abs(corrected) < plain / 3


@pytest.mark.parametrize(
    "p", [P, np.array([[0.6, 0.1], [0.1, 0.2]]), np.full((3, 4), 1 / 12)], ids=["nearly uniform", "plain", "independent"]
)
def test_intervals_hold_the_truth_as_often_as_they_say(p):
    rng, n, hits, found = np.random.default_rng(0), 500, 0, 0
    truth, information = entropy(p.sum(axis=0)), mutual_information(p)
    for _ in range(1000):
        x, y = labels(rng, n, p)
        low, high = entropy_of_labels(y, corrected=True).interval(0.9)
        hits += low <= truth <= high
        low, high = mutual_information_of_labels(x, y, corrected=True).interval(0.9)
        found += low <= information <= high
    most = 940 if p.size == 4 else 1000  # 900 ± 4 standard deviations of a binomial count; rather more at the extremes
    assert 860 <= hits <= most
    assert 860 <= found <= most


@pytest.mark.item("PRB-21")
@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda rng, n: rng.normal(size=n), 1.4189385),
        (lambda rng, n: 0.01 * rng.normal(size=n), 1.4189385 + np.log(0.01)),
        (lambda rng, n: rng.exponential(size=n), 1.0),
        (lambda rng, n: rng.uniform(0, 3, size=n), np.log(3)),
        (lambda rng, n: rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]], 2.8378771 + np.log(0.6)),
        (lambda rng, n: rng.uniform(size=(n, 3)), 0.0),
    ],
    ids=["normal", "narrow", "exponential", "uniform", "correlated", "cube"],
)
def test_differential_entropy_of_points_is_near_the_truth(draw, truth):
    found = differential_entropy_of_points(draw(np.random.default_rng(0), 5000))
    bias = 0.05  # of the edges of the cube, the largest here
    assert abs(found.value - truth) < 4 * found.error + bias
    assert found.error < 0.03


@pytest.mark.item("PRB-21")
def test_entropy_of_points_moves_by_the_logarithm_of_the_scale():
    points = np.random.default_rng(0).normal(size=(500, 2))
    found = [differential_entropy_of_points(a * points + 7).value for a in (1.0, -5.0)]
    assert found[1] - found[0] == pytest.approx(2 * np.log(5), rel=1e-9)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert differential_entropy_of_points(points @ turn).value == pytest.approx(found[0], rel=1e-12)
    in_bits = differential_entropy_of_points(points, base=2)
    assert in_bits.value == pytest.approx(found[0] / np.log(2), rel=1e-14)


def test_neighbor_estimates_are_their_formulas_by_brute_force():
    rng, n, k = np.random.default_rng(0), 60, 4
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    distance = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    radii = np.sort(distance, axis=1)[:, k]
    expected = psi(n) - psi(k) + np.log(np.pi) + 2 * np.log(radii).mean()
    assert differential_entropy_of_points(X, k=k).value == pytest.approx(expected, rel=1e-12)
    x = np.abs((X / X.std(axis=0))[:, None] - X / X.std(axis=0)).max(axis=2)
    y = np.abs((Y / Y.std(axis=0))[:, None] - Y / Y.std(axis=0)).max(axis=2)
    radii = np.sort(np.maximum(x, y), axis=1)[:, k]
    inside = [(z < radii[:, None] * (1 - 1e-12)).sum(axis=1) - 1 for z in (x, y)]
    expected = psi(k) + psi(n) - (psi(inside[0] + 1) + psi(inside[1] + 1)).mean()
    assert mutual_information_of_points(X, Y, k=k).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.item("PRB-23")
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9])
def test_mutual_information_of_points_is_near_that_of_gaussians(rho):
    rng, n = np.random.default_rng(1), 3000
    x = rng.normal(size=n)
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)
    found, truth = mutual_information_of_points(x, y), -np.log1p(-(rho**2)) / 2
    assert abs(found.value - truth) < 4 * found.error + 0.005
    assert found.error < 0.03
    # scale and shift say nothing; the order of the two neither
    assert mutual_information_of_points(1e6 * y + 5, x).value == pytest.approx(found.value, rel=1e-6, abs=1e-9)


@pytest.mark.item("PRB-23")
def test_mutual_information_sees_what_covariance_does_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = x**2 + 0.1 * rng.normal(size=2000)
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.1
    assert mutual_information_of_points(x, y).value > 1
    blocks = mutual_information_of_points(rng.normal(size=(1000, 2)), rng.normal(size=(1000, 3)))
    assert abs(blocks.value) < 0.1


def test_interval_is_that_of_a_normal_variable():
    low, high = Estimate(2.0, 0.5).interval(0.95)
    assert (low, high) == pytest.approx(scipy.stats.norm(2.0, 0.5).interval(0.95), rel=1e-12)


def test_wrong_input_is_refused():
    x = np.arange(10.0)
    for call, message in [
        (lambda: entropy_of_labels([]), "at least one entry"),
        (lambda: entropy_of_labels([[1, 2]]), "vector"),
        (lambda: mutual_information_of_points(x, x[:2]), "as many rows; got 10 and 2"),
        (lambda: mutual_information_of_labels([1, 2], [1]), "as many labels"),
        (lambda: differential_entropy_of_points(x, k=10), "k must be"),
        (lambda: differential_entropy_of_points(x, k=0), "k must be"),
        (lambda: differential_entropy_of_points([1.0, np.nan, 2.0, 3.0]), "finite"),
        (lambda: differential_entropy_of_points(np.repeat(x, 4)), "more than 3 times"),
        (lambda: mutual_information_of_points(x, x[:9]), "as many rows"),
        (lambda: mutual_information_of_points(x, np.ones(10)), "constant"),
        (lambda: Estimate(0.0, 1.0).interval(1.0), "level"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
