"""The steps of variational Bayes, against scikit-learn, the definition of the bound, and sums over all assignments."""

import numpy as np
import pytest
import sklearn.decomposition as peer
from scipy.special import entr, psi
from scipy.stats import dirichlet

from lemmata.core.blocks import Blocks
from lemmata.topic.variational import (
    TIGHT,
    Posterior,
    Rest,
    Sums,
    batch_step,
    digamma,
    draw_start,
    exp_digammas,
    expected_logs,
    learned_alpha,
    learned_eta,
    moved,
    pass_block,
    settled,
    topics_bound,
    words_of,
)
from topic.tiny import corpus, log_evidence, tokens

TINY = np.array([[2, 1, 0], [0, 1, 2], [1, 0, 1]])


def bound_of(X, components, alpha, eta, rest=TIGHT):
    return settled(X, words_of(components), alpha, rest)[1].sum() + topics_bound(components, eta)


def test_digammas_are_scipys():
    x = np.concatenate([np.geomspace(3e-3, 1e12, 2000), [1e40, 1e200]])
    out, factor, bits = np.empty(len(x)), np.empty(len(x)), np.empty(len(x), np.int64)
    exp_digammas(x, len(x), out, factor, bits, bits.view(float))
    # e^ψ has an error of that of ψ times |ψ|, at most 340 here; 1e-12 is a few roundings of it
    np.testing.assert_allclose(out, np.exp(psi(x)), rtol=1e-12)
    np.testing.assert_allclose([digamma(v) for v in x], psi(x), rtol=1e-14, atol=1e-14)


def test_the_bound_is_its_definition():
    rng = np.random.default_rng(0)
    components, alpha, eta = rng.gamma(2.0, size=(2, 3)), np.array([0.7, 0.4]), 0.3
    gamma = settled(TINY, words_of(components), alpha, TIGHT)[0][:, :2]
    log_theta, log_beta = expected_logs(gamma), expected_logs(components)
    expected = 0.0
    for d, w in zip(*tokens(TINY), strict=True):
        phi = np.exp(log_theta[d] + log_beta[:, w])
        phi /= phi.sum()
        expected += phi @ (log_theta[d] + log_beta[:, w]) + entr(phi).sum()  # E log p(z|θ) + E log p(w|z, β) + H(z)
    for parameters, prior in [(g, alpha) for g in gamma] + [(row, np.full(3, eta)) for row in components]:
        # E log p(θ|α) is E log of the density, whose constant scipy gives as the density at the center
        center = np.full(len(prior), 1 / len(prior))
        constant = dirichlet(prior).logpdf(center) - ((prior - 1) * np.log(center)).sum()
        expected += constant + (prior - 1) @ (psi(parameters) - psi(parameters.sum())) + dirichlet(parameters).entropy()
    assert bound_of(TINY, components, alpha, eta) == pytest.approx(expected, rel=1e-10)


@pytest.mark.item("FAC-13")
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_the_evidence(seed):
    alpha, eta = np.array([0.7, 0.4]), 0.3
    evidence = log_evidence(TINY, 2, alpha, eta)
    state = (*draw_start(2, 3, alpha, eta, np.random.default_rng(seed)), 0)
    bounds = []
    for _ in range(60):
        state, value, _ = batch_step(Blocks.of(TINY, None), TINY.sum(), TIGHT, 0.0, (False, False), state)
        bounds.append(value * TINY.sum())
    assert max(bounds) < evidence
    assert evidence - max(bounds) < 4.0  # not idle either
    assert (np.diff(bounds)[20:] > -1e-12).all()  # after the first passes, in which documents do not come to rest


def test_a_pass_is_scikit_learns():
    X, _ = corpus(n=60, v=30, k=3, length=80, seed=1)
    settings = {"doc_topic_prior": 1.0, "topic_word_prior": 0.5, "mean_change_tol": 1e-13, "max_doc_update_iter": 5000}
    theirs = peer.LatentDirichletAllocation(3, **settings, max_iter=1, learning_method="batch", random_state=0).fit(X)
    start = np.random.RandomState(0).gamma(100.0, 0.01, (3, 30))  # what scikit-learn begins with
    sums = Sums(*pass_block(X, None, words_of(start), np.ones(3), TIGHT))
    components = moved(Posterior(start, np.ones(3), 0.5), sums, (False, False)).components
    np.testing.assert_allclose(components, theirs.components_, rtol=1e-7)
    # What documents make of these topics, too, and the bound.
    theirs.components_ = components
    theirs.exp_dirichlet_component_ = np.exp(expected_logs(components))
    gamma = settled(X, words_of(components), np.ones(3), TIGHT)[0][:, :3]
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), theirs.transform(X), rtol=1e-7)
    assert bound_of(X, components, np.ones(3), 0.5) == pytest.approx(theirs.score(X), rel=1e-9)


def test_blocks_add_up():
    X, _ = corpus(n=40)
    words, alpha = words_of(np.random.default_rng(0).gamma(1.0, size=(4, 60))), np.full(4, 0.3)
    weight = np.random.default_rng(1).integers(1, 4, 40).astype(float)
    whole = pass_block(X, weight, words, alpha, TIGHT)
    for cut in (1, 17, 39):
        one = pass_block(X[:cut], weight[:cut], words, alpha, TIGHT)
        other = pass_block(X[cut:], weight[cut:], words, alpha, TIGHT)
        for a, b, total in zip(one, other, whole, strict=True):
            np.testing.assert_allclose(np.add(a, b), total, rtol=1e-12)


def test_topics_that_padding_hides_do_not_matter():
    X, _ = corpus(n=20)
    rng = np.random.default_rng(0)
    for k in (1, 7, 8, 9):  # below, at and above a whole vector
        components = rng.gamma(1.0, size=(k, 60))
        gamma, bounds, restless = settled(X, words_of(components), np.full(k, 0.4), TIGHT)
        assert not restless
        np.testing.assert_allclose(gamma[:, :k].sum(axis=1), 0.4 * k + X.sum(axis=1), rtol=1e-12)
        again = settled(X, words_of(components[::-1]), np.full(k, 0.4), TIGHT)
        np.testing.assert_allclose(again[0][:, :k], gamma[:, :k][:, ::-1], rtol=1e-6)
        np.testing.assert_allclose(again[1], bounds, rtol=1e-12)


def test_words_that_topics_hardly_know_have_shares_nevertheless():
    components = np.full((3, 4), 1e-3)  # ψ(0.001) = −1000: its exponential is no number
    components[0, 0] = components[1, 1] = 50.0
    gamma, bounds, _ = settled(
        np.array([[0, 0, 2, 1], [3, 0, 0, 0], [0, 0, 0, 0]]), words_of(components), np.full(3, 1e-3), TIGHT
    )
    assert np.isfinite(gamma).all()
    assert np.isfinite(bounds).all()
    np.testing.assert_allclose(gamma[:, :3].sum(axis=1), 0.003 + np.array([3, 3, 0]), rtol=1e-12)
    np.testing.assert_array_equal(gamma[2, :3], 1e-3)
    assert bounds[2] == pytest.approx(0.0, abs=1e-12)


def test_steps_are_counted():
    X, _ = corpus(n=30)
    words = words_of(np.random.default_rng(0).gamma(1.0, size=(4, 60)))
    assert settled(X, words, np.full(4, 0.3), Rest(1e-9, 2))[2] == 30
    assert settled(X, words, np.full(4, 0.3), Rest(1e-9, 100_000))[2] == 0


def test_learned_priors_maximize_the_bound():
    rng = np.random.default_rng(0)
    alpha, n = np.array([0.3, 1.5, 0.7]), 4000
    logs = np.log(rng.dirichlet(alpha, n)).mean(axis=0)
    found = learned_alpha(logs, np.full(3, 1 / 3))
    np.testing.assert_allclose(psi(found.sum()) - psi(found) + logs, 0.0, atol=1e-10)
    np.testing.assert_allclose(found, alpha, rtol=0.1)
    components = rng.gamma(0.2, 10.0, size=(4, 30)) + 0.2
    eta = learned_eta(components)
    value = topics_bound(components, eta)
    assert all(topics_bound(components, eta * factor) < value for factor in (0.9, 0.999, 1.001, 1.1))


def test_documents_rest_where_the_bound_is_flat():
    X, _ = corpus(n=1, length=15)
    components, alpha = np.random.default_rng(3).gamma(1.0, size=(4, 60)), np.full(4, 0.6)
    gamma = settled(X, words_of(components), alpha, TIGHT)[0][0, :4]
    log_beta, words = expected_logs(components), X.toarray()[0]

    def bound(log_gamma):
        g = np.exp(log_gamma)
        told = words @ np.log(np.exp(expected_logs(g[None])[0]) @ np.exp(log_beta))
        return told + dirichlet_part(g, alpha)

    h = 1e-6
    slopes = [(bound(np.log(gamma) + h * e) - bound(np.log(gamma) - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-6)  # of central differences of a number of size 100


def dirichlet_part(g, alpha):
    """Minus the divergence of Dirichlet(g) from Dirichlet(α), up to a constant."""
    return (alpha - 1) @ (psi(g) - psi(g.sum())) + dirichlet(g).entropy()
