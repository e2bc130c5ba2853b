"""`LatentDirichletAllocation`: topics, each a law of words, and the shares that documents have in them.

The model: topics βₖ ~ Dirichlet(η) over the words, shares θ_d ~ Dirichlet(α) over the topics, and every word of the document d
is drawn, independently, from the mixture Σₖ θ_dk βₖ. η governs how few words a topic prefers, α how few topics a document has.
`variational` has the approximation of the posterior and its steps, `online` the same in minibatches, `gibbs` draws from the
posterior instead; `evaluation` says how probable unseen documents are, `coherence` whether top words go together.

Certificate of a variational fit (`lda_certificate`): a stationary point of the bound, computed by another way. Of a chain
(`gibbs_chain`): the draws are what they claim to be, and the chain is at rest.
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.config import jobs
from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.linear_model.stochastic import fold
from lemmata.topic.gibbs_chain import Chain, Plan, chain_certificate, tokens_of
from lemmata.topic.inference import bounds_block, draw_documents, evidence_bound, laws_of, perplexity, shares_block
from lemmata.topic.lda_certificate import certificate
from lemmata.topic.model import TopicModel
from lemmata.topic.online import Pace, online_block
from lemmata.topic.variational import FIRM, Rest, batch_step, distance, draw_start, words_of

ANY_FALL = 1.0  # nats a token; how much documents that change from one optimum to another can cost, no theorem says


class LatentDirichletAllocation(TopicModel):
    """Find topics in documents that are given by the counts of their words.

    Parameters
    ----------
    n_components : Number of topics.
    method : "variational" maximizes a lower bound of the evidence; "gibbs" draws from the posterior.
    doc_topic_prior : α, of the shares of topics in a document: one number, one a topic, "learn", or None for 1/n_components.
    topic_word_prior : η, of the words of a topic: a number, "learn", or None for 1/n_components.
    learning_method : "batch" moves the topics once a pass over all documents, "online" after every `batch_size` documents.
    learning_decay : κ of online steps, whose size is (learning_offset + steps)^−κ; in (½, 1] they converge.
    learning_offset : τ of online steps; larger makes the first ones smaller.
    max_iter : Passes over the documents at most; of "gibbs" the number of sweeps.
    batch_size : Documents of an online step.
    tol : Stop when a pass moves the topics (and priors, if learned) by no more than this share of their size.
    mean_change_tol : The steps of a document end when its pseudo-counts of topics move by no more, on average.
    max_doc_update_iter : Steps of a document at most.
    burn_in : Sweeps of "gibbs" at the start that are forgotten. Default: half of them.
    thinning : After the burn-in every so many-th sweep is kept, the last among them.
    total_samples : Documents of the corpus, for `partial_fit`, which sees parts of it.
    n_jobs : Threads; None for as many as `lemmata.config` says, −1 for all.
    verbose : 1 shows a progress bar.
    random_state : Seed of the start, of `sample` and of estimates by sampling. The same seed gives the same bits for any
        number of threads, from memory, Parquet or Dask.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    components_ : (n_components, n_features), λ: pseudo-counts of each word in each topic; of "gibbs" the mean counts of the
        draws kept, plus η.
    doc_topic_prior_ : (n_components,), α.
    topic_word_prior_ : η.
    bound_ : Lower bound of the log evidence of the documents, under the fitted posterior; not of "gibbs".
    assignments_ : Of "gibbs" only: (n_draws, n_tokens), topics of all tokens in the draws kept, document by document and in it
        word by word, a word that occurs n times n times. Where these would be more than 2²⁶, fewer draws are kept.
    log_joint_ : Of "gibbs" only: log p(words, topics) of all tokens, in the last draw.
    document_length_ : Mean number of words of a document.
    n_iter_ : Passes over the documents.
    converged_ : Whether they met tol.
    trace_ : The bound a word, at each pass; of "gibbs" log p(words, topics) a word, after each sweep.

    Examples
    --------
    >>> X = [[4, 3, 0, 0], [3, 5, 0, 0], [0, 0, 6, 2], [0, 0, 3, 4], [2, 3, 2, 3]]
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> model.transform(X).round(2)
    array([[0.06, 0.94],
           [0.06, 0.94],
           [0.94, 0.06],
           [0.94, 0.06],
           [0.5 , 0.5 ]])
    >>> model.top_words(2, ["goal", "team", "vote", "law"])
    [['vote', 'law'], ['team', 'goal']]
    >>> model.certify(X).holds
    True
    """

    generative = True

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"variational", "gibbs"})],
        "doc_topic_prior": [None, Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"learn"})],
        "topic_word_prior": [None, Interval(Real, 0, None, closed="neither"), StrOptions({"learn"})],
        "learning_method": [StrOptions({"batch", "online"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "max_doc_update_iter": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "thinning": [Interval(Integral, 1, None, closed="left")],
        "total_samples": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=10,
        *,
        method="variational",
        doc_topic_prior=None,
        topic_word_prior=None,
        learning_method="batch",
        learning_decay=0.7,
        learning_offset=10.0,
        max_iter=1000,
        batch_size=128,
        tol=1e-4,
        mean_change_tol=1e-6,
        max_doc_update_iter=1000,
        burn_in=None,
        thinning=10,
        total_samples=1e6,
        n_jobs=None,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.method = method
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.burn_in = burn_in
        self.thinning = thinning
        self.total_samples = total_samples
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to documents X; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        blocks, extent = self._documents(X, sample_weight, reset=True)
        with serial_blas(), jobs(self.n_jobs), self._fitting(blocks, X=X, y=y) as fitting:
            if self.method == "gibbs":
                self._fit_gibbs(blocks, extent, fitting)
            else:
                self._fit_variational(blocks, extent, fitting)
        return self

    def _fit_gibbs(self, blocks, extent, fitting):
        """Draw from the posterior, and keep some of the draws."""
        burn_in = self.max_iter // 2 if self.burn_in is None else self.burn_in
        if burn_in >= self.max_iter:
            raise ValueError(f"burn_in={burn_in} leaves nothing of max_iter={self.max_iter} sweeps; lower it or sweep more.")
        chain = Chain(tokens_of(blocks), self.n_components, Plan(self.max_iter, burn_in, self.thinning, self._learns()))

        def fitted(state):
            posterior, draws, joint = chain.attributes(state)
            return {**self._attributes(posterior, blocks.dtype), "assignments_": draws, "log_joint_": joint}

        run = fitting.iterate(
            chain.step,
            chain.start(*self._priors(), self.random_state),
            tol=0.0,
            monotone="up",  # only so that the last state counts, not the best:
            rounding=np.inf,  # log p(w, z) may go either way
            name="Gibbs sampling",
            fitted=fitted,
        )
        for name, value in fitted(run.state).items():
            setattr(self, name, value)
        self.document_length_ = extent[0] / extent[1]
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace

    def _fit_variational(self, blocks, extent, fitting):
        """Maximize the bound, in batches or online."""
        n_tokens, n_documents = extent
        if self.learning_method == "online":
            step = self._online_step(blocks, n_tokens, n_documents)
        else:
            step = partial(batch_step, blocks, n_tokens, self._rest(), self.tol, self._learns())

        def fitted(state):
            return self._attributes(state[:3], blocks.dtype)

        # The bound of documents may fall, see `variational`; the driver then still keeps the last state, not the first.
        run = fitting.iterate(
            step, (*self._start(), 0), tol=self.tol, monotone="up", rounding=ANY_FALL, name="variational Bayes", fitted=fitted
        )
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        self._n_steps = run.state[3]
        self._keep(blocks, extent, run.state[:3])

    def _online_step(self, blocks, n_tokens, n_documents):
        pace = self._pace(n_documents)

        def step(state):
            after, _ = fold(blocks, partial(online_block, pace), (*state, 0.0))
            return after[:4], after[4] / max(n_tokens, 1.0), distance(after[:3], state[:3])

        return step

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Take online steps over the documents X, which are a part of a corpus of `total_samples` documents."""
        if self.method != "variational":
            raise ValueError(f"Only method='variational' learns from a part of the documents, and method is {self.method!r}.")
        blocks, extent = self._documents(X, sample_weight, reset=not hasattr(self, "components_"))
        if hasattr(self, "components_"):
            state = (*self._posterior(), self._n_steps)
        else:
            state, self.n_iter_ = (*self._start(), 0), 0
        with serial_blas(), jobs(self.n_jobs):
            after, _ = fold(blocks, partial(online_block, self._pace(self.total_samples)), (*state, 0.0))
            self._n_steps, self.n_iter_ = after[3], self.n_iter_ + 1
            self._keep(blocks, extent, after[:3])
        return self

    def _pace(self, total):
        settings = (self.batch_size, float(total), self.learning_decay, self.learning_offset)
        return Pace(*settings, self._rest(), self._learns())

    def _start(self):
        return draw_start(self.n_components, self.n_features_in_, *self._priors(), generator(self.random_state))

    def _rest(self):
        return Rest(self.mean_change_tol, self.max_doc_update_iter)

    def _learns(self):
        return isinstance(self.doc_topic_prior, str), isinstance(self.topic_word_prior, str)

    def _priors(self):
        """Give α, one number a topic, and η, to begin with."""
        k, learns, alpha, eta = self.n_components, self._learns(), self.doc_topic_prior, self.topic_word_prior
        alpha = np.array(1.0 / k if alpha is None or learns[0] else alpha, dtype=float)
        alpha = np.full(k, alpha) if alpha.ndim == 0 else alpha
        if alpha.shape != (k,) or not (np.isfinite(alpha) & (alpha > 0)).all():
            raise ValueError(f"doc_topic_prior must be {k} positive numbers, one a topic; got {self.doc_topic_prior!r}.")
        return alpha, 1.0 / k if eta is None or learns[1] else float(eta)

    def _attributes(self, posterior, dtype):
        components, alpha, eta = posterior
        return {
            "components_": as_output(components, dtype),
            "doc_topic_prior_": as_output(alpha, dtype),
            "topic_word_prior_": float(eta),
        }

    def _keep(self, blocks, extent, posterior):
        for name, value in self._attributes(posterior, blocks.dtype).items():
            setattr(self, name, value)
        self.document_length_ = extent[0] / extent[1]
        self.bound_ = evidence_bound(blocks, *self._posterior(), FIRM)

    def _posterior(self):
        """Give λ, α and η in double precision, once they can be those of a fit."""
        check_is_fitted(self)
        shapes = {"components_": (self.n_components, self.n_features_in_), "doc_topic_prior_": (self.n_components,)}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return self.components_.astype(float), self.doc_topic_prior_.astype(float), float(self.topic_word_prior_)

    @property
    def topic_word_(self):
        """Expected probability of each word in each topic, (n_components, n_features); rows sum to one."""
        return as_output(laws_of(self._posterior()[0]), self.components_.dtype)

    def transform(self, X):
        """Give the expected shares of the topics in each document; a document without words has the prior's."""
        return self._of_documents(X, shares_block)

    def score_samples(self, X):
        """Give a lower bound of the log probability of each document, its words taken in their order."""
        return self._of_documents(X, bounds_block)

    def _of_documents(self, X, block):
        components, alpha, _ = self._posterior()
        blocks, _ = self._documents(X)
        with serial_blas(), jobs(self.n_jobs):
            return as_output(blocks.map(block, words_of(components), alpha, self._rest()), blocks.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give the lower bound of the log evidence of documents X, the divergence of the topics from their prior included."""
        check_is_fitted(self)
        blocks, _ = self._documents(X, sample_weight)
        with serial_blas(), jobs(self.n_jobs):
            return evidence_bound(blocks, *self._posterior(), self._rest())

    def perplexity(self, X, *, method="document-completion", n_particles=20):
        """Give e^−(mean log probability of a word of documents X that is to be told): the smaller the better.

        Parameters
        ----------
        method : "document-completion" tells one half of each document from the other; "left-to-right" tells every word from
            those before it, by sampling, in a time that grows with the square of the length; "bound" uses the lower bound of
            the log probability of whole documents, and so gives an upper bound of the perplexity.
        n_particles : Particles of "left-to-right".
        """
        components, alpha, _ = self._posterior()
        blocks, (n_tokens, _) = self._documents(X)
        rng = generator(self.random_state)
        with serial_blas(), jobs(self.n_jobs):
            return perplexity(blocks, n_tokens, components, alpha, self._rest(), method, n_particles, rng)

    def sample(self, n_samples=1, length=None):
        """Draw documents of so many words each, by default the mean length of the fit; return their counts, sparse."""
        components, alpha, _ = self._posterior()
        length = max(round(self.document_length_), 1) if length is None else length
        drawn = draw_documents(components, alpha, n_samples, length, generator(self.random_state))
        return as_output(drawn, self.components_.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is stationary: a pass, computed by another way, leaves the topics where they are.

        Of "gibbs": prove that the draws are what they claim to be, and show that the chain stays where it is.
        """
        posterior = self._posterior()
        blocks, extent = self._documents(X, sample_weight)
        with serial_blas(), jobs(self.n_jobs):
            if self.method == "gibbs":
                return chain_certificate(self, tokens_of(blocks), posterior, self._priors(), self._learns())
            return certificate(self, blocks, extent, posterior)
