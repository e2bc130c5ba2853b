"""`PLSA`: probabilistic latent semantic analysis, the words of documents as mixtures of topics, without priors.

A word w of a document d is drawn by way of a topic z: p(w|d) = Σ_z p(z|d) p(w|z), or, what is the same,
p(d, w) = Σ_z p(z) p(d|z) p(w|z), a table of rank K at most. The log-likelihood

    L = Σ n_dw log Σ_z θ_dz φ_zw,    θ_d = p(z|d),  φ_z = p(w|z),

is maximized over both. EM (`plsa_em`) does so slowly. With W_dz = n_d θ_dz and H = φ, −L is, up to a constant, the generalized
Kullback–Leibler divergence of the counts from WH, once WH has the sum of the counts, as at the best W it has: non-negative
matrix factorization is the same problem [1], and `decomposition` has faster ways. EM can be tempered, which guards against
overfitting, as there is no prior that would [2]. A new document is folded in: its p(z|d) maximizes the likelihood for the
topics as they are.

Certificate: the laws are laws; p(z|d), found anew, is the best for them; no small change of p(w|z) is better given p(z|d), also
where it is zero; the likelihood and p(z) are those stored.

[1] Gaussier & Goutte, SIGIR (2005). [2] Hofmann, Machine Learning 42 (2001).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from scipy.special import rel_entr
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import TINY
from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.decomposition.nmf_descent import Descent, first_state
from lemmata.decomposition.nmf_entries import Layout, Table, entries, look_block, ones_or
from lemmata.decomposition.nmf_kl import Divergence
from lemmata.decomposition.nmf_start import start
from lemmata.topic.evaluation import completion_logs, whole_counts
from lemmata.topic.model import TopicModel
from lemmata.topic.plsa_certificate import certificate
from lemmata.topic.plsa_em import Iteration, fold_block, likelihood_block

ROUNDS, SMALL = 2, 3e7  # of Newton's method, and entries × topics² up to which a pass of it takes a blink; as in `NMF`
SETTLED = 8  # rounds where the topics are the best from the start: documents find theirs before these could move by rounding


class Kinds:
    """Different documents, as bytes of the places and of the counts of their words; of more than `most`, only that is known."""

    def __init__(self, rows, most):
        self.rows, self.most = rows, most

    def __add__(self, other):
        return Kinds(self.rows | other.rows if len(self.rows) <= self.most else self.rows, self.most)

    def laws(self, n_words):
        """Give the documents, (words, kinds), in an order that does not depend on theirs."""
        found = np.zeros((n_words, len(self.rows)))
        for column, (places, counts) in enumerate(sorted(self.rows)):
            found[np.frombuffer(places, np.int64), column] = np.frombuffer(counts, np.float64)
        return found


def kinds_block(X, weight, layout, most):
    """Collect the different documents of a block, but for empty ones, until there are more than `most`."""
    seen, found = entries(X, layout), set()
    for a, b in zip(seen.indptr[:-1], seen.indptr[1:], strict=True):
        order = a + np.argsort(seen.indices[a:b])
        order = order[seen.values[order] > 0]
        if len(order):
            found.add((seen.indices[order].astype(np.int64).tobytes(), seen.values[order].tobytes()))
        if len(found) > most:
            break
    return Kinds(found, most)


def entropy_block(X, weight, layout):
    """Sum n log(n/n_d): the log-likelihood of a model that knows every document by heart."""
    seen, s = entries(X, layout), ones_or(weight, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), np.diff(seen.indptr))
    lengths = np.bincount(rows, seen.values, minlength=X.shape[0])
    return float(np.sum(s[rows] * rel_entr(seen.values, lengths[rows])))


class PLSA(TopicModel):
    """Find topics in documents, as those laws of words under which the counts are most probable.

    Parameters
    ----------
    n_components : Number of topics.
    beta : Inverse temperature of EM, in (0, 1]; below 1 the topics overlap more, and may predict new documents better.
    solver : "em", or "descent" by Newton's method, which takes fewer but longer passes and knows no temperature. "auto" is
        "descent" for beta = 1 and tables of at most 3e7 non-zero counts × n_components², else "em".
    tol : Stop when a pass moves no more than this share of all words from topic to topic.
    max_iter : Passes over the documents at most.
    random_state : Seed of the start. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    components_ : (n_components, n_features), p(w|z): probability of each word in each topic; rows sum to one.
    topic_prior_ : (n_components,), p(z): share of each topic in all words.
    log_likelihood_ : Log probability of all words, given their documents, with the best p(z|d) for these topics.
    n_iter_ : Passes over the documents.
    converged_ : Whether they met tol.
    trace_ : Tempered log-likelihood a word, at each pass.

    Examples
    --------
    >>> X = [[4, 3, 0, 0], [3, 5, 0, 0], [0, 0, 6, 2], [0, 0, 3, 4], [2, 3, 2, 3]]
    >>> model = PLSA(2, random_state=0).fit(X)
    >>> model.components_.round(2)
    array([[0.  , 0.  , 0.55, 0.45],
           [0.45, 0.55, 0.  , 0.  ]])
    >>> model.transform([[2, 2, 0, 0], [1, 1, 1, 1]]).round(2)
    array([[0. , 1. ],
           [0.5, 0.5]])
    >>> model.certify(X).holds
    True
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, 1, closed="right")],
        "solver": [StrOptions({"auto", "descent", "em"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=10,
        *,
        beta=1.0,
        solver="auto",
        tol=1e-6,
        max_iter=2000,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.beta = beta
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to documents X; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        blocks, (n_tokens, _) = self._documents(X, sample_weight, reset=True)
        if self.solver == "descent" and self.beta < 1:
            raise ValueError(f"solver='descent' knows no temperature, and beta is {self.beta:g}; use solver='em'.")
        layout, portable = Layout(blocks.n_columns, False, False), self.checkpoint is not None
        with serial_blas(), self._fitting(blocks, X=X, y=y) as fitting:
            largest, _, _, weight, stored = blocks.reduce(look_block)
            table = Table(blocks, layout, largest.value, weight, stored, blocks.dtype)
            H, best = self._start(table)
            small = best or stored * self.n_components**2 <= SMALL
            if self.solver == "descent" or (self.solver == "auto" and self.beta == 1 and small):
                loss = Divergence(layout, 1 / table.unit, np.zeros(4))
                loss.n_rounds = SETTLED if best else ROUNDS
                steps = Descent(blocks, loss, blocks.reduce(loss.total_block), portable)
                state, laws = first_state(H, None, True), lambda state: state.H
                options = {"monotone": "down", "rounding": 1e-13 * steps.total}
            else:
                steps, state = Iteration(blocks, layout, self.beta, portable), (normalized(H), None)
                laws, options = lambda state: state[0], {"monotone": "up"}

            def fitted(state):
                return self._attributes(blocks, layout, normalized(laws(state)))

            run = fitting.iterate(steps.step, state, tol=self.tol, name="PLSA", fitted=fitted, **options)
            for name, value in fitted(run.state).items():
                setattr(self, name, value)
            self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
            if isinstance(steps, Descent):  # from the divergence, in the table's units
                self.trace_ = (blocks.reduce(entropy_block, layout) - run.trace * table.unit) / max(n_tokens, TINY)
        return self

    def _start(self, table):
        """Give the topics to begin with, (words, topics), and whether none can be better."""
        k, d = self.n_components, table.layout.n_columns
        if self.beta == 1:  # where words, or documents, can be the topics, nothing is more probable
            if k >= d:
                return np.eye(d)[:, np.arange(k) % d], True
            kinds = table.blocks.reduce(kinds_block, table.layout, k)
            if 0 < len(kinds.rows) <= k:
                return kinds.laws(d)[:, np.arange(k) % len(kinds.rows)], True
        return start("nndsvda", table, k, generator(self.random_state)), False

    def _attributes(self, blocks, layout, phi):
        """Give what follows from the laws of words, (words, topics)."""
        components = as_output(np.ascontiguousarray(phi.T), blocks.dtype)
        uniform = np.full(self.n_components, 1.0 / self.n_components)
        phi = np.ascontiguousarray(components.T.astype(float))
        value, mass = blocks.reduce(likelihood_block, layout, phi, self.beta, uniform)
        prior = mass / mass.sum() if mass.sum() > 0 else uniform
        return {"components_": components, "topic_prior_": as_output(prior, blocks.dtype), "log_likelihood_": float(value)}

    def _laws(self):
        """Give p(w|z), (words, topics), and p(z), in double precision, once they can be those of a fit."""
        check_is_fitted(self)
        shapes = {"components_": (self.n_components, self.n_features_in_), "topic_prior_": (self.n_components,)}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return np.ascontiguousarray(self.components_.T.astype(float)), self.topic_prior_.astype(float)

    def _fold(self):
        """Give what it takes to fold documents in."""
        phi, prior = self._laws()
        return Layout(self.n_features_in_, False, False), phi, self.beta, prior

    @property
    def topic_word_(self):
        """Probability of each word in each topic: `components_`."""
        check_is_fitted(self)
        return self.components_

    def transform(self, X):
        """Fold documents in: give p(z|d), the best shares of the topics; a document without words has p(z)."""
        check_is_fitted(self)
        blocks, _ = self._documents(X)
        with serial_blas():
            return as_output(blocks.map(fold_block, *self._fold()), blocks.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give the log probability of all words of documents X, folded in; −∞ if there is one that no topic has."""
        check_is_fitted(self)
        blocks, _ = self._documents(X, sample_weight)
        with serial_blas():
            return float(blocks.reduce(likelihood_block, *self._fold())[0])

    def perplexity(self, X, *, method="document-completion"):
        """Give e^−(mean log probability of a word of documents X that is to be told): the smaller the better.

        Parameters
        ----------
        method : "document-completion" tells one half of each document from the other; "fit" tells documents that were folded in
            as a whole, and so have seen what they tell.
        """
        check_is_fitted(self)
        blocks, (n_tokens, _) = self._documents(X)
        with serial_blas():
            if method == "fit":
                logs = blocks.reduce(likelihood_block, *self._fold())[0]
            elif method == "document-completion":
                X, rng = whole_counts(blocks.whole()[0]), generator(self.random_state)
                told, count = completion_logs(X, self._shares, self._laws()[0].T, rng)
                logs, n_tokens = told.sum(), count.sum()
            else:
                raise ValueError(f"method must be 'document-completion' or 'fit'; got {method!r}.")
        if not n_tokens:
            raise ValueError("There is no word to be told: every document is empty, or too short to be parted.")
        return float(np.exp(-logs / n_tokens))

    def _shares(self, X):
        return Blocks.of(X, None).map(fold_block, *self._fold())

    def certify(self, X, y=None, sample_weight=None):
        """Prove that p(z|d) is the best for the topics, and that no small change of p(w|z) is better given p(z|d)."""
        fold = self._fold()
        blocks, (n_tokens, _) = self._documents(X, sample_weight)
        with serial_blas():
            return certificate(self, blocks, n_tokens, *fold)


def normalized(H):
    """Give laws of words, (words, topics), from parts: each sums to one; a part of nothing is uniform."""
    totals = H.sum(axis=0)
    return np.where(totals > 0, H / np.maximum(totals, TINY), 1.0 / len(H))
