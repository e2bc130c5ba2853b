"""The chord test finds dents and never claims more; Jensen's gap; curvature."""

import numpy as np
import pytest
from scipy.special import logsumexp

from lemmata.probability.convexity import convexity_test, jensen_gap, least_curvature
from lemmata.probability.distributions import Normal

CONVEX = {
    "abs": (abs, (-2.0, 3.0)),
    "square": (lambda x: x**2, (-5.0, 5.0)),
    "exp": (np.exp, (-20.0, 20.0)),
    "line": (lambda x: 3 * x - 7, (-1e6, 1e6)),
    "constant": (lambda x: 0.0, (0.0, 1.0)),
    "minus log": (lambda x: -np.log(x), (1e-3, 10.0)),
    "entropy": (lambda x: x * np.log(x), (1e-9, 1.0)),
    "barrier": (lambda x: np.inf if x <= 0 else 1 / x, (-1.0, 1.0)),
    "norm": (lambda x: np.linalg.norm(x), (-np.ones(5), np.ones(5))),
    "largest": (lambda x: x.max(), (np.zeros(3), np.ones(3))),
    "logsumexp": (logsumexp, (-30 * np.ones(4), 30 * np.ones(4))),
    "eigenvalue": (lambda A: np.linalg.eigvalsh(A + A.T)[-1], (-np.ones((3, 3)), np.ones((3, 3)))),
}
DENTED = {
    "sine": (np.sin, (0.0, 3.0)),
    "cube": (lambda x: x**3, (-1.0, 1.0)),
    "root": (np.sqrt, (0.0, 4.0)),
    "minus abs": (lambda x: -abs(x), (-1.0, 1.0)),
    "step": (lambda x: float(x > 0.5), (0.0, 1.0)),
    "product": (lambda x: x[0] * x[1], (-np.ones(2), np.ones(2))),
    "ripple": (lambda x: x**2 + 1e-3 * np.cos(60 * x), (-1.0, 1.0)),  # second derivative down to −1.6
    "small ripple": (lambda x: x**2 + 1e-6 * np.cos(2000 * x), (-1.0, 1.0)),  # down to −2, on chords below 10⁻³ only
    "hole": (lambda x: np.inf if 0.4 < x < 0.6 else 0.0, (0.0, 1.0)),  # a domain that is not convex
}


@pytest.mark.item("PRB-28")
@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("seed", range(3))
def test_convex_functions_are_not_accused(name, seed):
    f, box = CONVEX[name]
    result = convexity_test(f, box, random_state=seed)
    assert not result.violated
    assert result.witness is None
    assert str(result) == "no violation found in 1000 trials"  # and no word of a proof


@pytest.mark.item("PRB-28")
@pytest.mark.parametrize("name", DENTED)
@pytest.mark.parametrize("seed", range(3))
def test_a_witness_is_a_proof(name, seed):
    f, box = DENTED[name]
    result = convexity_test(f, box, random_state=seed)
    assert result.violated
    x, y, theta, amount = result.witness
    assert 0 <= theta <= 1
    for point in (x, y):
        assert (np.asarray(box[0]) <= point).all()
        assert (point <= np.asarray(box[1])).all()
    chord = theta * f(x) + (1 - theta) * f(y)
    assert f(theta * x + (1 - theta) * y) - chord == pytest.approx(amount, rel=1e-9)
    assert amount > 0
    assert "not convex" in str(result)


@pytest.mark.item("PRB-28")
def test_no_violation_is_no_proof():
    narrow = lambda x: x**2 - 10 * np.exp(-(((x - 0.3) / 1e-9) ** 2))  # noqa: E731
    assert not convexity_test(narrow, (0.0, 1.0), random_state=0).violated  # not convex, and nobody saw it
    assert narrow(0.3) < 0.5 * (narrow(0.29) + narrow(0.31))
    assert narrow(0.299) > (0.001 * narrow(0.0) + 0.299 * narrow(0.3)) / 0.3  # there is the chord


@pytest.mark.item("PRB-28")
def test_points_may_come_from_a_distribution():
    assert not convexity_test(np.cosh, Normal(0, 1).sample, random_state=0).violated
    assert convexity_test(np.tanh, Normal(0, 1).sample, random_state=0).violated
    simplex = lambda n, rng: rng.dirichlet(np.ones(3), size=n)  # noqa: E731
    negative_entropy = lambda p: float((p * np.log(np.maximum(p, 1e-300))).sum())  # noqa: E731
    assert not convexity_test(negative_entropy, simplex, random_state=0).violated
    assert convexity_test(lambda p: -negative_entropy(p), simplex, random_state=0).violated


@pytest.mark.item("PRB-28")
@pytest.mark.parametrize("name", [name for name in CONVEX if name != "barrier"])
def test_jensen_gap_is_not_negative_on_any_sample(name):
    f, (low, high) = CONVEX[name]
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 100):
        x = rng.uniform(low, high, size=(n, *np.shape(low)))
        p = rng.dirichlet(np.ones(n))
        scale = max(abs(f(point)) for point in x)
        assert jensen_gap(f, x) >= -1e-13 * scale
        assert jensen_gap(f, x, p) >= -1e-13 * scale
    if name == "line":
        assert abs(jensen_gap(f, x, p)) <= 1e-13 * scale


@pytest.mark.item("PRB-28")
def test_jensen_gap_has_its_names():
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=20), rng.dirichlet(np.ones(20))
    assert jensen_gap(np.square, x, p) == pytest.approx(p @ (x - p @ x) ** 2, rel=1e-13)  # the variance
    q = rng.dirichlet(np.ones(20))  # with X = q/p the gap of −log is the divergence of p from q
    assert jensen_gap(lambda t: -np.log(t), q / p, p) == pytest.approx(p @ np.log(p / q), rel=1e-12)
    assert jensen_gap(np.sin, [0.5, 2.5]) < 0
    assert jensen_gap(lambda t: 1 / t, [0.0, 2.0], [0.0, 1.0]) == 0.0  # a point of probability 0 does not count


@pytest.mark.item("PRB-28")
def test_curvature_decides_where_there_is_a_hessian():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    points = rng.normal(size=(10, 3))
    S = A @ A.T
    assert least_curvature(lambda x: S, points).value == pytest.approx(np.linalg.eigvalsh(S)[0], rel=1e-12)
    saddle = least_curvature(lambda x: np.diag([1.0, 12 * x[1] ** 2 - 2, 3.0]), points)  # of y⁴ − y²
    assert saddle.value < 0
    f = lambda x: x[0] ** 2 / 2 + x[1] ** 4 - x[1] ** 2 + 1.5 * x[2] ** 2  # noqa: E731
    h = 1e-2 * saddle.direction
    second = (f(saddle.point + h) + f(saddle.point - h) - 2 * f(saddle.point)) / 1e-4
    assert second == pytest.approx(saddle.value, abs=1e-3)
    assert least_curvature(lambda x: np.exp(x), [-1.0, 0.0, 2.0]).value == pytest.approx(np.exp(-1), rel=1e-15)
    # |x| has no Hessian at 0, where its curvature is; it is convex all the same
    assert least_curvature(lambda x: 0.0, [-1.0, 1.0]).value == 0
    assert not convexity_test(abs, (-1.0, 1.0), random_state=0).violated


def test_wrong_input_is_refused():
    for call, message in [
        (lambda: convexity_test(abs, (1.0, 0.0)), "low < high"),
        (lambda: convexity_test(abs, [(0.0, 1.0)]), r"domain must be a box \(low, high\)"),
        (lambda: convexity_test(abs, (0.0, np.inf)), "finite"),
        (lambda: convexity_test(abs, (0.0, 1.0), n_trials=0), "n_trials"),
        (lambda: convexity_test(lambda x: np.nan, (0.0, 1.0)), "nan"),
        (lambda: jensen_gap(abs, []), "at least one point"),
        (lambda: jensen_gap(abs, [1.0, 2.0], [1.0]), "one probability"),
        (lambda: least_curvature(lambda x: x, []), "at least one point"),
        (lambda: least_curvature(lambda x: [[1.0, 2.0], [0.0, 1.0]], [[0.0, 0.0]]), "symmetric"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
