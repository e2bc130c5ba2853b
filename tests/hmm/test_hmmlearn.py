"""Iterates, likelihoods, paths and posteriors against hmmlearn's, kept in a file with the script that made it."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from lemmata.hmm import CategoricalHMM, GaussianHMM

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "hmmlearn.json").read_text())
X, SYMBOLS, LENGTHS = np.array(REFERENCE["X"]), np.array(REFERENCE["symbols"])[:, None], REFERENCE["lengths"]
CHAIN = {"startprob_init": REFERENCE["start"], "transmat_init": REFERENCE["transition"]}
STEPS = {"n_iter": 10, "tol": 0.0, "acceleration": None}


def quietly(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten steps do not converge
        return model.fit(rows, lengths=LENGTHS)


@pytest.mark.item("SEQ-13")
@pytest.mark.parametrize("kind", ["diag", "full", "spherical", "tied"])
def test_gaussian_iterates(kind):
    expected = REFERENCE["fits"][kind]
    d = X.shape[1]
    shape = {"full": (3, d, d), "tied": (d, d), "diag": (3, d), "spherical": (3,)}[kind]
    ones = np.broadcast_to(np.eye(d), shape) if kind in ("full", "tied") else np.ones(shape)
    start = CHAIN | {"means_init": REFERENCE["means"], "covars_init": ones}
    model = quietly(GaussianHMM(3, covariance_type=kind, min_covar=0.0, **start, **STEPS), X)
    np.testing.assert_allclose(model.startprob_, expected["startprob"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.transmat_, expected["transmat"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.means_, expected["means"], rtol=1e-9)
    covars = np.array(expected["covars"])[:, 0] if kind == "spherical" else expected["covars"]  # one and the same per column
    np.testing.assert_allclose(model.covars_, covars, rtol=1e-8)
    np.testing.assert_allclose(len(X) * model.trace_, expected["history"], rtol=1e-10)
    assert (np.diff(model.trace_) >= 0).all()
    assert model.score(X, lengths=LENGTHS) == pytest.approx(expected["score"], rel=1e-10)
    log_prob, path = model.decode(X, LENGTHS)
    assert log_prob == pytest.approx(expected["log_prob"], rel=1e-10)
    assert np.array_equal(path, expected["path"])
    np.testing.assert_allclose(model.predict_proba(X, LENGTHS)[:5], expected["posterior"], rtol=1e-8, atol=1e-12)


@pytest.mark.item("SEQ-12")
def test_categorical_iterates_over_several_sequences():
    expected = REFERENCE["fits"]["categorical"]
    start = CHAIN | {"emissionprob_init": REFERENCE["emission"]}
    model = quietly(CategoricalHMM(3, n_features=4, **start, **STEPS), SYMBOLS)
    np.testing.assert_allclose(model.startprob_, expected["startprob"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.transmat_, expected["transmat"], rtol=1e-9)
    np.testing.assert_allclose(model.emissionprob_, expected["emissionprob"], rtol=1e-9)
    np.testing.assert_allclose(len(X) * model.trace_, expected["history"], rtol=1e-10)
