"""Learning from rows with holes: the observed-data likelihood and its stationary points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from discriminant_analysis.naive_classes import drawn, joint
from lemmata.discriminant_analysis import GaussianBayes, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.discriminant_analysis.structures import expanded
from lemmata.mixture import MissingGaussian

dense = pytest.mark.parametrize("structure", ["full", "tied"])


def likelihood(model, X, y, weight):
    """Log-likelihood of what is seen, given the classes, by brute force."""
    matrices = expanded(model.covariance_, model.covariance, *model.means_.shape)
    return weight @ joint(X, np.ones(len(model.means_)), model.means_, matrices)[np.arange(len(y)), y]


@dense
def test_no_step_makes_what_is_seen_more_likely(structure):
    X, y, weight = drawn(share=0.2)
    weight = weight + 1.0
    model = GaussianBayes(structure, var_smoothing=0.0).fit(X, y, sample_weight=weight)
    best, rng = likelihood(model, X, y, weight), np.random.default_rng(0)
    means, covariance = model.means_.copy(), model.covariance_.copy()
    lower = np.linalg.cholesky(covariance)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(5):
            u = size * rng.normal(size=covariance.shape)
            model.covariance_ = lower @ (np.eye(X.shape[1]) + (u + np.swapaxes(u, -1, -2)) / 2) @ np.swapaxes(lower, -1, -2)
            model.means_ = means + size * rng.normal(size=means.shape) * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
            assert likelihood(model, X, y, weight) < best


def test_each_class_of_its_own_is_a_gaussian_with_missing_entries():
    X, y, weight = drawn(share=0.2)
    model = GaussianBayes("full", var_smoothing=0.0).fit(X, y, sample_weight=weight)
    for c in range(3):
        rows = (y == c) & (weight > 0)
        alone = MissingGaussian(reg_covar=0.0).fit(X[rows], sample_weight=weight[rows])
        assert_allclose(model.means_[c], alone.mean_, rtol=1e-5)  # both stop when the likelihood stands still to 1e-12
        scale = np.sqrt(np.outer(np.diagonal(alone.covariance_), np.diagonal(alone.covariance_)))
        assert_allclose(model.covariance_[c] / scale, alone.covariance_ / scale, atol=1e-5)


@dense
def test_integer_weights_are_repeated_rows(structure):
    X, y, weight = drawn(share=0.15)
    weighted = GaussianBayes(structure).fit(X, y, sample_weight=weight)
    repeated = GaussianBayes(structure).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        GaussianBayes("full"),
        GaussianBayes("tied", shrinkage=0.3),
        LinearDiscriminantAnalysis(priors=[0.5, 0.3, 0.2]),
        LinearDiscriminantAnalysis(shrinkage=0.1),
        QuadraticDiscriminantAnalysis(reg_param=0.2, shrinkage=0.1),
    ],
)
def test_a_stationary_point_is_certified_and_nothing_else(model):
    X, y, weight = drawn(share=0.2, seed=2)
    model.fit(X, y, sample_weight=weight)
    certificate = model.certify(X, y, sample_weight=weight)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "local"
    rng = np.random.default_rng(0)
    for name in ("means_", "covariance_"):
        kept = getattr(model, name)
        setattr(model, name, kept * (1 + 0.01 * rng.normal(size=kept.shape)))
        assert not model.certify(X, y, sample_weight=weight).holds, name
        setattr(model, name, kept)


def test_rows_that_lack_entries_at_random_are_worth_more_than_complete_rows_alone():
    truth, y, _ = drawn(n=600, k=2, seed=3)
    X = truth.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    complete = ~np.isnan(X).any(axis=1)
    best = GaussianBayes("full").fit(truth, y)

    def miss(model):
        return np.abs((model.means_ - best.means_) / np.sqrt(np.diagonal(best.covariance_, axis1=1, axis2=2))).mean()

    assert miss(GaussianBayes("full").fit(X, y)) < 0.6 * miss(GaussianBayes("full").fit(X[complete], y[complete]))


def test_what_the_table_does_not_tell_is_said():
    X, y, _ = drawn(share=0.1)
    none = X.copy()
    none[y == 1, 2] = np.nan
    for structure in ("full", "tied", "diag"):
        with pytest.raises(ValueError, match="Column 2 has no value in any row of class 1"):
            GaussianBayes(structure).fit(none, y)
    apart = X.copy()
    apart[::2, 0] = np.nan
    apart[1::2, 3] = np.nan
    for structure in ("full", "tied"):
        with pytest.raises(ValueError, match="Columns 0 and 3 are never seen in the same row"):
            GaussianBayes(structure).fit(apart, y)
    assert GaussianBayes("diag").fit(apart, y).certify(apart, y).holds
    with pytest.raises(ValueError, match='shrinkage="auto" needs complete rows'):
        GaussianBayes("full", shrinkage="auto").fit(X, y)


def test_a_likelihood_without_a_maximum_is_said_to_have_none():
    X, y, _ = drawn(n=150, d=6, share=0.2)  # six complete rows of class 0 lie on a plane
    with pytest.warns(ConvergenceWarning, match="The covariance of class 0 is singular"):
        model = GaussianBayes("full").fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.certify(X, y).holds


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_shrinkage_comes_after_the_holes(structure):
    X, y, _ = drawn(n=120, share=0.15)
    plain, less = GaussianBayes(structure).fit(X, y), GaussianBayes(structure, shrinkage=0.3).fit(X, y)
    mean = np.trace(plain.covariance_, axis1=-2, axis2=-1)[..., None, None] / 4
    assert_allclose(less.covariance_, 0.7 * plain.covariance_ + 0.3 * mean * np.eye(4), rtol=1e-10, atol=1e-12)
    assert less.certify(X, y).holds


UNITS = np.array([1.0, 1.0, 1e7, 1.0])
SHRUNK = {
    "columns of very different scale": (LinearDiscriminantAnalysis(shrinkage=0.1), UNITS),
    "little left": (GaussianBayes("full", shrinkage=0.9), UNITS),
    "nothing left": (GaussianBayes("tied", shrinkage=1.0), UNITS),
    "an identity of large units": (QuadraticDiscriminantAnalysis(reg_param=0.5), np.full(4, 1e-6)),
    "the identity alone": (QuadraticDiscriminantAnalysis(reg_param=1.0), np.ones(4)),
}


@pytest.mark.parametrize("case", SHRUNK)
def test_what_shrinkage_covers_up_is_certified_all_the_same(case):
    X, y, _ = drawn(n=200, share=0.2)
    model, units = SHRUNK[case]
    model = clone(model).fit(X * units, y)
    assert model.certify(X * units, y).holds, str(model.certify(X * units, y))
    model.covariance_ = model.covariance_ * 1.01
    assert not model.certify(X * units, y).holds
