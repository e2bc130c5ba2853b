"""`HMMClassifier`: sequences of several kinds, one hidden Markov model for each.

A sequence x is given to the class c with the largest P(c) p(x|model of c): Bayes' rule. p(x|model) comes from the forward
recursion. With equal P(c), the default, this is how words were recognized by their sounds.
"""

import numpy as np
from scipy.special import logsumexp
from sklearn.base import _fit_context, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.estimator import Classifier
from lemmata.core.random import generator
from lemmata.hmm.certificate import likelihood_block
from lemmata.hmm.gaussian import GaussianHMM
from lemmata.hmm.hidden_markov import HiddenMarkovModel
from lemmata.hmm.sequences import checked_lengths, gathered


class HMMClassifier(Classifier):
    """Classify whole sequences by one hidden Markov model for each class.

    Parameters
    ----------
    estimator : Hidden Markov model to fit to the sequences of each class; default `GaussianHMM(2, random_state=0)`.
    class_prior : Probabilities of the classes, in the order of classes_; default equal ones.

    Attributes
    ----------
    classes_ : Labels of the classes.
    estimators_ : Fitted models, in the order of classes_.
    class_prior_ : Probabilities of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> slow = [np.repeat(rng.normal(size=6) > 0, 5)[:, None] + 0.1 * rng.normal(size=(30, 1)) for _ in range(4)]
    >>> fast = [(rng.normal(size=30) > 0)[:, None] + 0.1 * rng.normal(size=(30, 1)) for _ in range(4)]
    >>> model = HMMClassifier().fit([*slow[:3], *fast[:3]], ["slow"] * 3 + ["fast"] * 3)
    >>> model.predict([slow[3], fast[3]])
    array(['slow', 'fast'], dtype='<U4')
    """

    generative = True
    _parameter_constraints = {"estimator": [HiddenMarkovModel, None], "class_prior": ["array-like", None]}

    def __init__(self, estimator=None, *, class_prior=None):
        self.estimator = estimator
        self.class_prior = class_prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True  # a table is one sequence, not many
        tags.input_tags.allow_nan = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, lengths=None):
        """Fit to sequences X, a list of tables or one table with lengths, and one label y for each."""
        sequences = _listed(X, lengths)
        y = np.asarray(y)
        check_classification_targets(y)
        if y.shape != (len(sequences),):
            raise ValueError(f"There are {len(sequences)} sequences and y has the shape {y.shape}: give one label for each.")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError("A classifier needs at least two classes, and y holds one class only.")
        self.class_prior_ = self._prior()
        model = GaussianHMM(2, random_state=0) if self.estimator is None else self.estimator
        self.estimators_ = []
        for label in self.classes_:
            self.estimators_.append(clone(model).fit([s for s, own in zip(sequences, y, strict=True) if own == label]))
        self.n_features_in_ = self.estimators_[0].n_features_in_
        return self

    def _prior(self):
        k = len(self.classes_)
        if self.class_prior is None:
            return np.full(k, 1.0 / k)
        found = np.asarray(self.class_prior, dtype=float)
        if found.shape != (k,) or not (found > 0).all() or abs(found.sum() - 1.0) > 1e-6:
            raise ValueError(f"class_prior must hold {k} probabilities above 0 that sum to 1, one for each class.")
        return found / found.sum()

    def log_likelihood(self, X, lengths=None):
        """Give log p(sequence|model of each class): (sequences, classes)."""
        check_is_fitted(self)
        sequences = _listed(X, lengths)
        return np.array([[model.score(sequence) for model in self.estimators_] for sequence in sequences])

    def joint_log_likelihood(self, X, lengths=None):
        """Give log p(sequence, class): (sequences, classes)."""
        return self.log_likelihood(X, lengths) + np.log(self.class_prior_)

    def sample(self, n_samples=1, random_state=None, *, length=1):
        """Draw sequences of so many rows; return them, a list of tables, and their classes."""
        check_is_fitted(self)
        rng = generator(random_state)
        drawn = rng.choice(len(self.classes_), size=n_samples, p=self.class_prior_)
        return [self.estimators_[c].sample(length, rng)[0] for c in drawn], self.classes_[drawn]

    def predict_proba(self, X, lengths=None):
        """Give the probability of each class for each sequence, by Bayes' rule."""
        return _bayes_rule(self.log_likelihood(X, lengths), self.class_prior_)

    def predict(self, X, lengths=None):
        """Give the most probable class of each sequence; ties go to the first."""
        return self.classes_[self.predict_proba(X, lengths).argmax(axis=1)]

    def score(self, X, y, lengths=None):
        """Give the share of sequences that get their label."""
        return float(np.mean(self.predict(X, lengths) == np.asarray(y)))

    def certify(self, X, y, lengths=None):
        """Prove each model stationary on the sequences of its class, and the probabilities Bayes' rule."""
        check_is_fitted(self)
        sequences, y = _listed(X, lengths), np.asarray(y)
        checks = [same(self.class_prior_, self._prior(), "class_prior", "the probabilities of the classes are those given")]
        for label, model in zip(self.classes_, self.estimators_, strict=True):
            own = [s for s, found in zip(sequences, y, strict=True) if found == label]
            checks += [
                Check(f"{label}: {check.name}", check.value, check.limit, check.kind, check.claim)
                for check in model.certify(own).checks
            ]
        miss = float(np.abs(self.predict_proba(sequences) - self._by_logarithms(sequences)).max())
        checks.append(Check("posterior", miss, 1e-6, "proof", "the probabilities of the classes are Bayes' rule"))
        return Certificate(*checks, subject=repr(self))

    def _by_logarithms(self, sequences):
        """Give the probabilities of the classes, with likelihoods from sums of exponentials."""
        logs = np.empty((len(sequences), len(self.classes_)))
        for i, sequence in enumerate(sequences):
            for j, model in enumerate(self.estimators_):
                blocks = model._checked_sequences(sequence, None)
                logs[i, j] = blocks.reduce(likelihood_block, model._checker(), *model._chain(), model._stored())
        return _bayes_rule(logs, self.class_prior_)


def _bayes_rule(log_likelihoods, prior):
    """Give the probabilities of the classes; a sequence that no class allows has the prior."""
    logs = log_likelihoods + np.log(prior)
    total = logsumexp(logs, axis=1, keepdims=True)
    possible = np.isfinite(total)
    return np.where(possible, np.exp(logs - np.where(possible, total, 0.0)), prior)


def _listed(X, lengths):
    """Give sequences as a list of tables."""
    rows, found = gathered(X, lengths)
    if found is None:
        raise ValueError("Give a list of sequences, or one table with the lengths of its sequences.")
    rows = np.asarray(rows)
    if rows.ndim != 2:
        raise ValueError(f"A sequence is a table with rows and columns; got an array with {rows.ndim} axes.")
    found = checked_lengths(found, len(rows))
    return np.split(rows, np.cumsum(found)[:-1])
