"""AdaBoost: a vote of weak members, each fitted to what the others got wrong.

Every row has a weight, at first 1/n. A round fits a member f_t to the weighted rows, finds its weighted error ε_t, gives it the
say a_t = ν (ln((1 − ε_t)/ε_t) + ln(K − 1)) among K classes [2], multiplies the weights of the rows that it got wrong by
exp(a_t), and scales them to a sum of one. The class with the largest say of those that vote for it wins.
With two classes ±1 and the learning rate ν = 1 this is the textbook's F = Σ α_t f_t with α_t = a_t/2 = ½ ln((1 − ε_t)/ε_t) [1]:
α_t minimizes the mean of exp(−yF) over the step, and after it f_t is right on exactly half of the weight.

Theorem. Let A be the sum of the a_t and V the say of the members that are right on a row. Where the vote is wrong, V ≤ A/2; so

    training error ≤ mean of exp(A/2 − V) = Π exp(−a_t/2) (1 − ε_t + ε_t exp(a_t)),

for any a_t whatsoever. With ν = 1 the factor is K √(ε_t (1 − ε_t)/(K − 1)); for two classes it is 2 √(ε_t (1 − ε_t)), at most
exp(−2 (½ − ε_t)²): members that are better than guessing by any fixed amount drive the training error to zero. For more classes
it is below one only where ε_t < 1/K; what then falls in every round in which ε_t < 1 − 1/K is the loss of the coded vote, the
mean of exp(A/K − V), by K (1 − ε_t)^(1/K) (ε_t/(K − 1))^(1 − 1/K) [2].

A member takes weights of rows; or it is fitted to n rows drawn with the weights as odds (resampling). As ε_t is that of
the weights on all rows in either form, the theorem holds for both.

[1] Freund & Schapire, Journal of Computer and System Sciences 55 (1997). [2] Zhu, Zou, Rosset & Hastie, Statistics and Its
Interface 2 (2009).
"""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from lemmata.core.estimator import Classifier
from lemmata.core.random import generator, spawn
from lemmata.ensemble.adaboost_certificate import certificate
from lemmata.ensemble.adaboost_rounds import boost, cast, decisions, probabilities
from lemmata.ensemble.stump_kernels import side_classes
from lemmata.ensemble.stumps import Stumps, stump_tree, vote_block
from lemmata.ensemble.weak_learners import Draws, MemberLearner, StumpLearner
from lemmata.tree.decision_tree import DecisionTreeClassifier


class AdaBoostClassifier(Classifier):
    """Classify by a vote of members that were fitted in turn, each to what the others got wrong.

    Parameters
    ----------
    estimator : What to boost: any classifier, of lemmata or scikit-learn. Default: stumps, trees of a single split, which are
        fitted by kernels of their own.
    n_estimators : Members at most; a member that is never wrong is the last.
    learning_rate : Factor ν of every member's say.
    resample : Whether members are fitted to rows drawn with the weights as odds, rather than to weighted rows. Estimators that
        take no sample_weight always are. Other estimators see weights that sum to the number of rows, not to one.
    random_state : Seed of the rows drawn, and of members that take one.

    Attributes
    ----------
    estimators_ : Fitted members; stumps are made into trees when they are asked for.
    estimator_ : The member before any fit.
    estimator_weights_ : (members,), say a_t of each member, as in scikit-learn: ν (ln((1 − ε)/ε) + ln(K − 1)), for two classes
        and ν = 1 twice the α = ½ ln((1 − ε)/ε) of textbooks. A member that is never wrong has more than all before it: 1 + the
        sum of theirs. There is no entry for a member that was not needed.
    estimator_errors_ : (members,), weighted error ε_t of each member.
    bound_ : (members,), bound on the training error after each round, the mean of exp(A/2 − V): with ν = 1 and two classes
        Π 2 √(ε (1 − ε)), with K classes Π K √(ε (1 − ε)/(K − 1)), which may exceed one and then says nothing.
    edge_bound_ : (members,), the looser exp(−2 Σ (½ − ε)²), for two classes and ν = 1.
    train_errors_ : (members,), weighted share of the training rows that the vote gets wrong after each round.
    feature_importances_ : Mean importances of the columns in the members, weighted by their say.
    classes_, n_classes_ : Labels of the classes, and their number.
    draw_seed_, draw_numbers_ : Seed of the draws of rows, and which of them each member was fitted to (a draw that makes a
        member no better than guessing is followed by another, nine times at most); absent without resampling.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = [0, 0, 1, 1, 0, 0]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> model.predict(X)
    array([0, 0, 1, 1, 0, 0])
    >>> model.estimator_errors_.round(4), model.bound_.round(4), model.train_errors_.round(4)
    (array([0.3333, 0.25  , 0.1667]), array([0.9428, 0.8165, 0.6086]), array([0.3333, 0.3333, 0.    ]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "resample": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(self, estimator=None, *, n_estimators=50, learning_rate=1.0, resample=False, random_state=None):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.resample = resample
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        member = None if self.estimator is None else get_tags(self.estimator)
        tags.input_tags.allow_nan = member is None or member.input_tags.allow_nan
        tags.input_tags.sparse = member is not None and member.input_tags.sparse
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition.

        X may also be a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        X, y, base = self._labeled(X, y, sample_weight, reset=True, order="C").whole()
        base = np.ones(len(y)) if base is None else base
        self.n_classes_ = len(self.classes_)
        self.estimator_ = DecisionTreeClassifier(max_depth=1) if self.estimator is None else clone(self.estimator)
        rng = generator(self.random_state)
        draws = self._draws(rng, base)
        if self._has_stumps():
            learner = StumpLearner(X, y, base, self.n_classes_, draws)
        else:
            learner = MemberLearner(X, y, base, self.classes_, draws, self.estimator_, spawn(rng, self.n_estimators))
        rounds = boost(learner, self.n_estimators, self.learning_rate)
        if rounds.guessed is not None:
            self._no_better_than_guessing(rounds, learner.members)
        self._members = Stumps.of(learner.members) if self._has_stumps() else learner.members
        self.estimator_errors_, self.estimator_weights_, self.bound_, self.train_errors_ = rounds[:4]
        if draws is not None:
            self.draw_seed_, self.draw_numbers_ = draws.seed, np.array(draws.used)
        return self

    def _has_stumps(self):
        """Tell whether members are the stumps that have kernels of their own."""
        plain = DecisionTreeClassifier(max_depth=1).get_params() | {"random_state": None}
        return (
            type(self.estimator_) is DecisionTreeClassifier and self.estimator_.get_params() | {"random_state": None} == plain
        )

    def _draws(self, rng, base):
        """Begin the draws of rows, if members are not fitted to weights."""
        for name in ("draw_seed_", "draw_numbers_"):  # of an earlier fit
            vars(self).pop(name, None)
        if not self.resample and has_fit_parameter(self.estimator_, "sample_weight"):
            return None
        return Draws(int(rng.integers(2**62)), base)

    def _no_better_than_guessing(self, rounds, members):
        told = f"errs on {rounds.guessed:.6g} of the weight, no better than guessing among {self.n_classes_} classes"
        if not members:
            raise ValueError(f"The first member {told}: there is nothing to boost; give a stronger estimator.")
        warnings.warn(
            f"AdaBoost stopped after {len(members)} of {self.n_estimators} members, because the next one {told}.",
            ConvergenceWarning,
            stacklevel=4,
        )

    @property
    def estimators_(self):
        """Fitted members."""
        check_is_fitted(self, "_members")
        if not isinstance(self._members, Stumps):
            return self._members
        return [self._tree(t) for t in range(len(self._members.feature))]

    def _tree(self, t):
        """Make a stump into a fitted tree."""
        tree = clone(self.estimator_)
        tree.tree_ = stump_tree(self._members.one(t))
        tree.classes_, tree.n_features_in_, tree.max_features_ = self.classes_, self.n_features_in_, self.n_features_in_
        return tree

    @property
    def edge_bound_(self):
        """The bound exp(−2 Σ (½ − ε)²) on the training error after each round."""
        check_is_fitted(self)
        if self.n_classes_ > 2 or self.learning_rate != 1:
            raise AttributeError("edge_bound_ exists for two classes and learning_rate=1 only; bound_ exists always.")
        return np.exp(-2 * np.cumsum((0.5 - self.estimator_errors_) ** 2))

    @property
    def feature_importances_(self):
        """Mean importances of the columns in the members, weighted by their say."""
        check_is_fitted(self)
        say = self.estimator_weights_
        if isinstance(self._members, Stumps):
            inner = self._members.feature >= 0
            return np.bincount(self._members.feature[inner], say[inner], self.n_features_in_) / say.sum()
        if not hasattr(self._members[0], "feature_importances_"):
            raise AttributeError(f"{type(self._members[0]).__name__} has no feature_importances_.")
        return sum(a * member.feature_importances_ for a, member in zip(say, self._members, strict=True)) / say.sum()

    def _codes(self, X):
        """Yield the numbers of the classes that each member gives to rows."""
        if not isinstance(self._members, Stumps):
            for member in self._members:
                yield np.searchsorted(self.classes_, member.predict(X))
            return
        for stump, sides in zip(zip(*self._members[:3], strict=True), self._members.sides, strict=True):
            codes = np.full(len(X), sides[0])
            if stump[0] >= 0:
                side_classes(X[:, stump[0]], stump[1], stump[2], *sides, codes)
            yield codes

    def decision_function(self, X):
        """Give the vote on each row: −2 … 2 for two classes, 4F/A; for more, a value for each, that of the winner largest."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False, order="C")
        say = self.estimator_weights_
        if isinstance(self._members, Stumps):
            votes = blocks.map(vote_block, self._members, say)
        else:
            rows = blocks.whole()[0]
            votes = np.zeros((blocks.n_rows, self.n_classes_))
            for a, codes in zip(say, self._codes(rows), strict=True):
                cast(votes, codes, a)
        return decisions(votes, say.sum())

    def predict_proba(self, X):
        """Give the probability of each class: scikit-learn's softmax of the decision values, cautious by design."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X):
        """Give the logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def predict(self, X):
        """Give the class that wins the vote: the most probable one."""
        return self._winner(self.predict_proba(X))

    def _winner(self, p):
        return self.classes_[p.argmax(axis=1)]

    def staged_decision_function(self, X):
        """Yield the decision values after each round."""
        check_is_fitted(self)
        X = self._blocks(X, reset=False, order="C").whole()[0]
        votes = np.zeros((X.shape[0], self.n_classes_))
        for a, say, codes in zip(self.estimator_weights_, np.cumsum(self.estimator_weights_), self._codes(X), strict=True):
            cast(votes, codes, a)
            yield decisions(votes, say)

    def staged_predict_proba(self, X):
        """Yield the probabilities after each round."""
        return (probabilities(decision) for decision in self.staged_decision_function(X))

    def staged_predict(self, X):
        """Yield the predictions after each round."""
        return (self._winner(p) for p in self.staged_predict_proba(X))

    def staged_score(self, X, y, sample_weight=None):
        """Yield the accuracy after each round."""
        return (accuracy_score(y, predicted, sample_weight=sample_weight) for predicted in self.staged_predict(X))

    def certify(self, X, y=None, sample_weight=None):
        """Replay the weights from the members' predictions: errors, says, bounds, and that every stump is the best one."""
        check_is_fitted(self)
        return certificate(self, *self._labeled(X, y, sample_weight, reset=False, order="C").whole())
