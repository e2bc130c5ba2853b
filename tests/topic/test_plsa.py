"""PLSA: EM as it is written, the fit that is as good as any factorization, and documents folded in."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import NMF as PeerNMF

import lemmata
from contracts.crash import Crash
from contracts.problems import assert_same_bits
from contracts.test_certificate import sabotaged
from lemmata.core.blocks import Blocks
from lemmata.decomposition import NMF
from lemmata.decomposition.nmf_entries import Layout
from lemmata.topic import PLSA
from lemmata.topic.plsa_em import Iteration, fold_block


def documents(n=80, d=12, k=3, length=40, seed=0):
    rng = np.random.default_rng(seed)
    topics, shares = rng.dirichlet(np.full(d, 0.3), k), rng.dirichlet(np.full(k, 0.5), n)
    return np.array([rng.multinomial(length, share @ topics) for share in shares]).astype(float)


def literal_step(N, theta, phi, beta):
    """E and M as they are written, word by word: the sum over topics begins anew for every word of every document."""
    (n, d), k = N.shape, theta.shape[1]
    words, shares, value = np.zeros((d, k)), np.zeros((n, k)), 0.0
    for i in range(n):
        for w in range(d):
            odds = np.array([(theta[i, z] * phi[w, z]) ** beta for z in range(k)])
            total = sum(odds)
            if N[i, w] > 0:
                value += N[i, w] * np.log(total) / beta
                words[w] += N[i, w] * odds / total
                shares[i] += N[i, w] * odds / total
    return shares / N.sum(axis=1, keepdims=True), words / words.sum(axis=0), value


@pytest.mark.item("FAC-14")
@pytest.mark.parametrize("beta", [1.0, 0.6])
def test_em_is_what_is_written(beta):
    N = documents(7, 5, 2, 9)
    phi = np.random.default_rng(1).dirichlet(np.ones(5), 3).T
    theta = np.full((7, 3), 1 / 3)
    for X in (N, csr_array(N)):
        iteration = Iteration(Blocks.of(X, None), Layout(5, False, False), beta, False)
        state, (t, p) = (phi, None), (theta, phi)
        for _ in range(5):
            state, value, _ = iteration.step(state)
            t, p, expected = literal_step(N, t, p, beta)
            np.testing.assert_allclose(value, expected / N.sum(), rtol=1e-12)
            np.testing.assert_allclose(state[0], p, rtol=1e-12)
            np.testing.assert_allclose(state[1][0], t, rtol=1e-12)


@pytest.mark.item("FAC-14")
@pytest.mark.parametrize("options", [{}, {"solver": "em"}, {"beta": 0.8}, {"beta": 0.5}])
def test_the_likelihood_never_falls_and_fits_are_certified(options):
    X = documents()
    model = PLSA(3, random_state=0, max_iter=20_000, **options).fit(X)
    assert (np.diff(model.trace_) >= -1e-12).all()
    assert model.converged_
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    for name, twin in sabotaged(model):
        assert not twin.certify(X).holds, name
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0, rtol=1e-12)
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    # p(d, w) = Σ p(z) p(d|z) p(w|z) is p(d) p(w|d), and of rank 3 at most; hot topics merge.
    of_documents = shares * X.sum(axis=1, keepdims=True) / X.sum()
    np.testing.assert_allclose(of_documents.sum(axis=0), model.topic_prior_, rtol=1e-9)
    joint = of_documents @ model.components_
    assert np.linalg.matrix_rank(joint) <= 3
    logs = np.log(joint / joint.sum(axis=1, keepdims=True), where=X > 0, out=np.zeros_like(X))
    np.testing.assert_allclose(model.log_likelihood_, (X * logs).sum(), rtol=1e-9)


@pytest.mark.item("FAC-11", "FAC-14")
def test_it_is_non_negative_factorization_normalized():
    X = documents(60, 10, 3)
    model, parts = PLSA(3, random_state=0).fit(X), NMF(3, loss="kl", random_state=0).fit(X)
    H, W = parts.components_, parts.transform(X)
    fit = W @ H
    value = (X * np.log(fit / fit.sum(axis=1, keepdims=True), where=X > 0, out=np.zeros_like(X))).sum()
    np.testing.assert_allclose(model.log_likelihood_, value, rtol=1e-9)
    np.testing.assert_allclose(model.components_, H / H.sum(axis=1, keepdims=True), atol=1e-4)  # both stop at 1e-6 a step
    peer = PeerNMF(3, beta_loss="kullback-leibler", solver="mu", init="nndsvda", max_iter=5000, tol=1e-9, random_state=0)
    W = peer.fit_transform(X)
    fit = W @ peer.components_
    value = (X * np.log(fit / fit.sum(axis=1, keepdims=True), where=X > 0, out=np.zeros_like(X))).sum()
    assert model.log_likelihood_ >= value - 1e-4 * abs(value)


@pytest.mark.parametrize("beta", [1.0, 0.7])
def test_a_folded_document_has_the_best_shares(beta):
    X = documents(30, 8, 3)
    phi = np.random.default_rng(0).dirichlet(np.full(8, 0.5), 3).T.copy()
    shares = fold_block(X, None, Layout(8, False, False), phi, beta, np.full(3, 1 / 3))

    def value(theta, row):
        return (row * np.log(((theta * phi) ** beta).sum(axis=1))).sum() / beta

    for row, theta in zip(X[:5], shares[:5], strict=True):
        best = minimize(
            lambda free, row=row: -value(np.exp(free) / np.exp(free).sum(), row),
            np.zeros(3),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 10_000},
        )
        assert value(theta, row) >= -best.fun - 1e-9


def test_unknown_words_and_empty_documents():
    X = documents()
    X[:, 4] = 0.0  # a word that nobody uses
    model = PLSA(3, random_state=0).fit(X)
    assert not model.components_[:, 4].any()
    new = np.zeros((2, 12))
    new[0, 4] = 3.0
    np.testing.assert_allclose(model.transform(new), [model.topic_prior_] * 2, rtol=1e-12)
    assert model.score(new) == -np.inf
    assert model.perplexity(new[:1], method="fit") == np.inf
    with pytest.raises(ValueError, match="no word to be told"):
        model.perplexity(new[1:])


def test_as_many_topics_as_documents_or_words_know_all_by_heart():
    X = documents(6, 12, 3)
    by_heart = (X * np.log(X / X.sum(axis=1, keepdims=True), where=X > 0, out=np.zeros_like(X))).sum()
    for k in (6, 8, 12, 15):
        model = PLSA(k, random_state=0).fit(X)
        np.testing.assert_allclose(model.log_likelihood_, by_heart, rtol=1e-12)
        assert model.certify(X).holds, str(model.certify(X))


def test_temperature_can_predict_better():
    X, held = documents(60, 40, 4, 25), documents(200, 40, 4, 25, seed=0)[60:]
    one, cooler = PLSA(8, random_state=0).fit(X), PLSA(8, beta=0.7, random_state=0, max_iter=20_000, tol=1e-5).fit(X)
    assert cooler.log_likelihood_ < one.log_likelihood_
    known = X.any(axis=0)
    assert cooler.perplexity(held * known) < one.perplexity(held * known)


def test_sparse_documents_threads_and_top_words():
    X = documents(500, 12, 3)
    with lemmata.config(n_threads=1, block_rows=64):
        one = PLSA(3, random_state=0).fit(csr_array(X))
    with lemmata.config(n_threads=4, block_rows=64):
        assert_same_bits(PLSA(3, random_state=0).fit(csr_array(X)), one)
        assert_same_bits(PLSA(3, random_state=0, beta=0.9, max_iter=5000).fit(X), _alone(X))
    np.testing.assert_allclose(one.components_, PLSA(3, random_state=0).fit(X).components_, atol=1e-6)
    assert one.top_words(1) == [[w] for w in one.components_.argmax(axis=1)]


def _alone(X):
    with lemmata.config(n_threads=1, block_rows=64):
        return PLSA(3, random_state=0, beta=0.9, max_iter=5000).fit(X)


def test_refusals():
    with pytest.raises(ValueError, match="knows no temperature"):
        PLSA(2, beta=0.5, solver="descent").fit(documents())
    with pytest.raises(ValueError, match="Negative values"):
        PLSA(2).fit(-documents())
    with pytest.raises(ValueError, match="method must be"):
        PLSA(2, random_state=0).fit(documents()).perplexity(documents(), method="guess")


def test_em_resumes_from_a_checkpoint(tmp_path):
    X, path = documents(), tmp_path / "fit"
    model = PLSA(3, beta=0.9, random_state=0, max_iter=5000)

    with lemmata.config(block_rows=16):
        with pytest.raises(MemoryError):
            clone(model).set_params(checkpoint=path).set_callbacks(Crash(15)).fit(X)
        assert_same_bits(clone(model).set_params(checkpoint=path).fit(X), clone(model).fit(X))


def test_folding_in_forgets_no_word():
    # Topics in which most words do not occur: several small shares can together be all that explains a word.
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.ones(300), 20).T * (rng.random((300, 20)) < 0.25)
    phi[~phi.any(axis=1), 0] = 1e-3
    phi /= phi.sum(axis=0)
    X = np.array([rng.multinomial(60, share @ phi.T) for share in rng.dirichlet(np.full(20, 0.05), 500)]).astype(float)
    layout, prior = Layout(300, False, False), np.full(20, 1 / 20)
    shares = fold_block(X, None, layout, phi, 1.0, prior)
    slow = fold_block(X, None, layout, phi, 1.0 - 1e-12, prior)  # by EM
    value, expected = ((X * np.log(theta @ phi.T, where=X > 0, out=np.zeros_like(X))).sum(axis=1) for theta in (shares, slow))
    assert (value >= expected - 1e-8).all()
