"""`QuadraticDiscriminantAnalysis`, against scikit-learn and published numbers."""

from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as Peer

from discriminant_analysis.naive_classes import drawn
from lemmata.discriminant_analysis import QuadraticDiscriminantAnalysis


@pytest.mark.item("NBR-04")
@pytest.mark.parametrize("reg_param", [0.0, 0.2])
@pytest.mark.parametrize("k", [2, 3])
def test_it_agrees_with_scikit_learn(k, reg_param):
    X, y, _ = drawn(n=300, k=k)
    ours = QuadraticDiscriminantAnalysis(reg_param=reg_param).fit(X, y)
    peer = Peer(reg_param=reg_param, store_covariance=True, tol=0.0).fit(X, y)  # 1.9.1 divides by n, as maximum likelihood does
    assert_allclose(ours.means_, peer.means_, rtol=1e-12)
    assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.scalings_, peer.scalings_, rtol=1e-9)
    turned = np.einsum("kia,kib->kab", ours.rotations_, np.array(peer.rotations_))
    assert_allclose(np.abs(turned), np.broadcast_to(np.eye(4), turned.shape), atol=1e-6)  # axes up to their sign
    assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-8, atol=1e-9)
    score, other = ours.decision_function(X), peer.decision_function(X)
    assert_allclose(
        score + (0.0 if k == 2 else 2 * np.log(2 * np.pi)), other, rtol=1e-8, atol=1e-8
    )  # log N has ½d log 2π as well
    assert_array_equal(ours.predict(X), peer.predict(X))
    assert ours.certify(X, y).holds


@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
def test_shrinkage_is_that_of_scikit_learn(shrinkage):
    X, y, _ = drawn(n=90)
    ours = QuadraticDiscriminantAnalysis(shrinkage=shrinkage).fit(X, y)
    peer = Peer(solver="eigen", shrinkage=shrinkage, store_covariance=True, tol=0.0).fit(X, y)
    assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-10, atol=1e-12)
    assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-8, atol=1e-9)


def test_iris_has_three_mistakes():
    X, y = load_iris(return_X_y=True)
    assert (QuadraticDiscriminantAnalysis().fit(X, y).predict(X) != y).sum() == 3  # as MASS::qda has


@pytest.mark.parametrize("seed", range(3))
def test_what_follows_from_the_parameters_is_checked(seed):
    X, y, _ = drawn(seed=seed)
    model = QuadraticDiscriminantAnalysis(reg_param=0.1).fit(X, y)
    rng = np.random.default_rng(seed)
    for name in ("scalings_", "rotations_"):
        kept = getattr(model, name)
        u = rng.normal(size=kept.shape)
        setattr(model, name, kept + 0.01 * np.linalg.norm(kept) * u / np.linalg.norm(u))
        assert not model.certify(X, y).holds, name
        setattr(model, name, kept)


@pytest.mark.parametrize("scales", [[1e-6, 1.0, 1e6, 1e3], [1e-70, 1e70, 1.0, 2.0], [1.0, 2.0, 3.0, 400.0]], ids=str)
def test_axes_of_columns_of_very_different_scale(scales):
    X, y, _ = drawn()
    X = X * scales
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    for covariance, values, R in zip(model.covariance_, model.scalings_, model.rotations_, strict=True):
        sd = np.sqrt(np.diag(covariance))
        assert_allclose((R * values @ R.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), rtol=1e-9, atol=1e-9)
        assert_allclose(R.T @ R, np.eye(4), atol=1e-13)
        assert (np.diff(values) <= 0).all()
        # the determinant knows nothing of axes
        logdet = np.linalg.slogdet(covariance / np.outer(sd, sd))[1] + 2 * np.log(sd).sum()
        assert_allclose(np.log(values).sum(), logdet, rtol=1e-9)
    kept = model.scalings_.copy()
    model.scalings_[:, 3] = 777.0 if scales[0] < 1 else 2 * kept[:, 3]
    assert "scalings" in [check.name for check in model.certify(X, y).failed]


def test_it_takes_the_parameters_of_scikit_learn():
    X, y, _ = drawn()
    ours, theirs = (signature(cls).parameters for cls in (QuadraticDiscriminantAnalysis, Peer))
    assert list(ours)[:6] == list(theirs)[:6]
    assert [ours[name].default for name in list(ours)[:6]] == [theirs[name].default for name in list(ours)[:6]]
    model = QuadraticDiscriminantAnalysis(solver="eigen", store_covariance=True, tol=0.0).fit(X, y)
    assert_array_equal(model.predict_proba(X), QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X))
