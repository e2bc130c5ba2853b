"""Maximum likelihood on the line: scores of zero, SciPy's fits, weights as repetitions, data that hardly vary, errors."""

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import digamma

from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    LogisticDistribution,
    MultivariateNormal,
    Normal,
)

LAWS = [
    Normal(3, 2),
    LogisticDistribution(-1, 3),
    Exponential(0.2),
    Gamma(3, 2),
    Gamma(0.2, 5),
    Beta(2, 5),
    Beta(0.4, 0.6),
    Bernoulli(0.3),
    Categorical([0.5, 0.2, 0.3]),
    Dirichlet([0.5, 2, 4]),
    MultivariateNormal([1, 2], [[2, 1], [1, 3]]),
]


def parameters(law):
    return np.concatenate([np.ravel(getattr(law, name)) for name, f in law.__dataclass_fields__.items() if f.init])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_weight_means_repetition_and_zero_means_absent(law):
    x = law.sample(60, 1)
    weights = np.random.default_rng(2).integers(0, 4, size=60)
    if x.dtype.kind == "i":
        weights[:3], x[:3] = 1, [0, 1, min(2, law.support[1])]
    weighted, repeated = law.fit(x, weights), law.fit(np.repeat(x, weights, axis=0))
    np.testing.assert_allclose(parameters(weighted), parameters(repeated), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(parameters(law.fit(x, weights * 0.125)), parameters(weighted), rtol=1e-10, atol=1e-12)
    hidden = x.astype(float)
    hidden[weights == 0] = np.nan  # what has the weight zero is not even looked at
    np.testing.assert_allclose(parameters(law.fit(hidden, weights)), parameters(weighted), rtol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_finds_the_law_and_nothing_nearby_is_likelier(law):
    x = law.sample(5000, 0)
    fitted = law.fit(x)
    best = fitted.logpdf(x).sum()
    assert best >= law.logpdf(x).sum()
    np.testing.assert_allclose(parameters(fitted), parameters(law), rtol=0.15, atol=0.1)
    rng = np.random.default_rng(0)
    for _ in range(10):
        moved = []
        for name, f in law.__dataclass_fields__.items():
            if f.init:
                value = np.asarray(getattr(fitted, name), dtype=float)
                value = value * (1 + 0.01 * rng.uniform(-1, 1, size=value.shape))
                value = value / value.sum() if name == "p" and value.ndim else (value + value.T) / 2
                moved.append(value if value.ndim else float(value))
        assert type(law)(*moved).logpdf(x).sum() < best


def test_agrees_with_scipy():
    x = st.gamma(2.5, scale=3).rvs(500, random_state=0)
    shape, _, scale = st.gamma.fit(x, floc=0)
    assert parameters(Gamma.fit(x)) == pytest.approx([shape, 1 / scale], rel=1e-6)
    x = st.beta(2.5, 0.7).rvs(500, random_state=0)
    a, b, *_ = st.beta.fit(x, floc=0, fscale=1)
    assert parameters(Beta.fit(x)) == pytest.approx([a, b], rel=1e-5)
    x = st.logistic(5, 2).rvs(500, random_state=0)
    assert parameters(LogisticDistribution.fit(x)) == pytest.approx(st.logistic.fit(x), rel=1e-5)
    assert parameters(Normal.fit(x)) == pytest.approx(st.norm.fit(x), rel=1e-12)
    assert Exponential.fit(np.abs(x)).mean == pytest.approx(np.abs(x).mean(), rel=1e-14)
    assert Bernoulli.fit([1, 1, 0, 1]).p == 0.75
    assert (Bernoulli.fit([1, 1]).p, Bernoulli.fit([0, 0]).p) == (1, 0)
    assert Binomial.fit([1, 2, 3], [1, 0, 1], n=4) == Binomial(4, 0.5)
    assert Categorical.fit([2, 0], n_categories=4) == Categorical([0.5, 0, 0.5, 0])


@pytest.mark.parametrize(("shape", "rate"), [(1e-2, 5), (0.5, 1e-9), (1, 1), (300, 2), (1e8, 3)])
def test_score_of_a_gamma_fit_is_zero_to_rounding(shape, rate):
    x = Gamma(shape, rate).sample(1000, 0)
    x = x[x > 0]
    law = Gamma.fit(x)
    assert abs(np.log(law.rate) - digamma(law.shape) + np.log(x).mean()) < 1e-14 * (10 + np.abs(np.log(x)).mean())
    assert law.mean == pytest.approx(x.mean(), rel=1e-14)


@pytest.mark.parametrize("alpha", [[0.02, 3], [1, 1], [500, 20], [1e7, 1e7], [0.1, 0.2, 0.3], [1, 10, 100, 1000], [30] * 40])
def test_score_of_a_dirichlet_or_beta_fit_is_zero_to_rounding(alpha):
    x = Dirichlet(alpha).sample(800, 0)
    x = x[(x > 0).all(axis=1)]
    law = Dirichlet.fit(x)
    score = digamma(law.alpha.sum()) - digamma(law.alpha) + np.log(x).mean(axis=0)
    assert np.abs(score).max() < 1e-14 * (10 + np.abs(np.log(x)).mean(axis=0).max())
    if len(alpha) == 2:
        beta = Beta.fit(x[:, 0])
        assert [beta.a, beta.b] == pytest.approx(law.alpha, rel=1e-6)


@pytest.mark.parametrize(("loc", "scale"), [(0, 1), (5, 1e-3), (-1e3, 1e200), (0, 1e-200)])
def test_score_of_a_logistic_fit_is_zero_to_rounding(loc, scale):
    x = LogisticDistribution(loc, scale).sample(1000, 0)
    law = LogisticDistribution.fit(x)
    z = (x - law.loc) / law.scale
    assert abs(np.tanh(z / 2).mean()) < 1e-11
    assert abs((z * np.tanh(z / 2)).mean() - 1) < 1e-11
    outlier = LogisticDistribution.fit(np.append(np.linspace(-1, 1, 50), 1e6))
    z = (np.append(np.linspace(-1, 1, 50), 1e6) - outlier.loc) / outlier.scale
    assert abs((z * np.tanh(z / 2)).mean() - 1) < 1e-11


def test_data_that_hardly_vary_give_the_limits_of_the_formulas():
    d = np.array([-1.5, -0.5, 0.5, 1.5]) * 1e-6
    variance = (d**2).mean()
    gamma = Gamma.fit(7 * (1 + d))  # as the spread goes to 0, 1/shape is the squared coefficient of variation
    assert gamma.shape == pytest.approx(1 / variance, rel=1e-5)
    assert gamma.mean == pytest.approx(7, rel=1e-12)
    beta = Beta.fit(0.25 * (1 + d))
    assert beta.var == pytest.approx(0.25**2 * variance, rel=1e-5)
    assert beta.mean == pytest.approx(0.25, rel=1e-12)
    rows = np.stack([0.2 * (1 + d), 0.5 - 0.2 * d, np.full(4, 0.3)], axis=1)
    dirichlet = Dirichlet.fit(rows)
    assert dirichlet.mean == pytest.approx([0.2, 0.5, 0.3], rel=1e-9)
    assert Normal.fit(1e8 + np.array([-1.0, 1.0]) / 64) == Normal(1e8, 1 / 64)
    assert Normal.fit([1e-200, 3e-200]).scale == pytest.approx(1e-200, rel=1e-12)
    assert Beta.fit([1e-300, 0.5]).a > 0
    assert Gamma.fit([1e-300, 1e300]).shape > 0


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: Normal.fit([]), "at least one"),
        (lambda: Normal.fit([[1.0, 2.0]]), "a list of numbers"),
        (lambda: Normal.fit([1.0, np.nan]), "NaN"),
        (lambda: Normal.fit([1.0, 2.0], [1]), "sample_weight must have 2"),
        (lambda: Normal.fit([1.0, 2.0], [1, -1]), "sample_weight must have 2"),
        (lambda: Normal.fit([1.0, 2.0], [0, 0]), "one positive"),
        (lambda: Normal.fit([1.0, 1.0]), "All values are equal"),
        (lambda: Normal.fit([1.0, 2.0], [0, 1]), "All values are equal"),
        (lambda: LogisticDistribution.fit([1.0, 1.0]), "All values are equal"),
        (lambda: Gamma.fit([1.0, 1.0]), "All values are equal"),
        (lambda: Gamma.fit([0.0, 1.0]), "positive values only"),
        (lambda: Beta.fit([0.5, 0.5]), "All values are equal"),
        (lambda: Beta.fit([0.5, 1.0]), "strictly between 0 and 1"),
        (lambda: Exponential.fit([0.0, 0.0]), "some value must be positive"),
        (lambda: Exponential.fit([-1.0, 2.0]), "no negative values"),
        (lambda: Bernoulli.fit([0, 2]), "zeros and ones"),
        (lambda: Binomial.fit([5], n=4), "among n = 4"),
        (lambda: Categorical.fit([0.5]), "whole numbers"),
        (lambda: Categorical.fit([3], n_categories=3), "whole numbers"),
        (lambda: Dirichlet.fit([[0.5, 0.5], [0.5, 0.5]]), "All rows are equal"),
        (lambda: Dirichlet.fit([[0.0, 1.0], [0.5, 0.5]]), "positive probabilities"),
        (lambda: Dirichlet.fit([[0.2, 0.2], [0.5, 0.5]]), "with the sum 1"),
        (lambda: MultivariateNormal.fit([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), "plane of fewer dimensions"),
        (lambda: MultivariateNormal.fit([1.0, 2.0]), "rows of numbers"),
    ],
)
def test_refuses_data_without_a_maximum_with_a_sentence(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()
