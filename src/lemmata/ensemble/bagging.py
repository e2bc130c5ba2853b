"""Bagging: the mean or the vote of members of any kind, each fitted to a bag of rows, and of columns if asked.

The mean of B members whose errors have variance σ² and correlation ρ has variance ρσ² + (1 − ρ)σ²/B and the bias of one: it
helps members that follow their rows closely, and no others. On the rows that its bag left out a member is tested (out-of-bag).
A member sees the rows of its bag and no others: a lemmata estimator gets each row once with its number of copies as
a weight, which means the same and is less work; any other gets the copies, since libraries differ in what weights mean,
show members the rows of weight zero, or are slow with weights.

Certificate: bags and columns are drawn again from the seeds; lemmata members are certified on their bags, others fitted again.

Reference: Breiman, Machine Learning 24 (1996).
"""

from functools import partial

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from lemmata.core.certificate import same
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.ensemble.bagging_base import AGAIN, Bagging
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor
from lemmata.tree.draw import mix


class BaggingClassifier(Classifier, Bagging):
    """A vote of classifiers, each fitted to rows drawn with replacement.

    Parameters
    ----------
    estimator : Any classifier, of lemmata or scikit-learn; None for a decision tree.
    n_estimators : Number of members.
    max_samples : Rows that a bag draws: a number, a share of the rows, or None for as many as there are.
    max_features : Columns of each member: a number or a share.
    bootstrap : Whether rows are drawn with replacement.
    bootstrap_features : Whether columns are.
    oob_score : "auto" tests each member on the rows that its bag left out, if any. True warns in addition if a row was never
        left out. A function of (y, prediction) takes the place of the accuracy. False leaves it.
    n_jobs : Threads; None for those of `lemmata.config`, −1 for all processors. The result is the same for any number.
    random_state : Seed, for the same bags and members again.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : The labels.
    estimator_ : The member before any fit; `estimators_` has the fitted ones, which know classes by their numbers.
    seeds_ : Seed of each member, from which its bag, its columns and its own chance are drawn.
    oob_score_ : Accuracy of the out-of-bag predictions.
    oob_decision_function_ : (n, K) mean probabilities from the members that have not seen a row; NaN if all have.

    Notes
    -----
    Columns of text go to the members as they are: trees take them, and pipelines that encode them. Members without
    `predict_proba` vote. With `bootstrap`, weights of rows are odds of being drawn, and whole ones repetitions;
    without, they are handed to the members. A bag that holds a single class is drawn again.

    Examples
    --------
    >>> from lemmata.linear_model import LogisticRegression
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2), model.certify(X, y).holds
    (0.97, True)
    """

    _default = DecisionTreeClassifier

    def __init__(
        self,
        estimator=None,
        n_estimators=10,
        *,
        max_samples=None,
        max_features=1.0,
        bootstrap=True,
        bootstrap_features=False,
        oob_score="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Draw the bags and fit the members."""
        return self._fit(X, y, sample_weight)

    def _rows(self, X, y, sample_weight, *, reset):
        return self._validated(partial(self._labeled, reset=reset), X, y, sample_weight)

    def _width(self):
        return len(self.classes_)

    def _usable(self, seed, y):
        """Return a seed whose bag holds two classes: this one, or the first that follows."""
        while len(np.unique(y[self._counts(seed) > 0])) < 2:
            seed = int(mix(np.uint64(seed), AGAIN)) >> 1
        return seed

    def _said(self, member, X):
        """Give a member's probabilities of all classes, of which its bag may have missed some."""
        out = np.zeros((X.shape[0], self._width()))
        if hasattr(member, "predict_proba"):
            out[:, np.asarray(member.classes_, dtype=int)] = member.predict_proba(X)
        else:
            out[np.arange(X.shape[0]), np.asarray(member.predict(X)).astype(int)] = 1.0
        return out

    def _keep_out_of_bag(self, X, y):
        self.oob_decision_function_ = self._unseen_means(X)
        self._warn(~np.isnan(self.oob_decision_function_[:, 0]))
        self.oob_score_ = self._score_out_of_bag(self.oob_decision_function_, y)

    def _score_out_of_bag(self, shares, y):
        unseen = ~np.isnan(shares[:, 0])
        if not unseen.any():
            return np.nan
        made, true = self.classes_[shares[unseen].argmax(axis=1)], self.classes_[y[unseen]]
        return float((self.oob_score if callable(self.oob_score) else accuracy_score)(true, made))

    def _out_of_bag_checks(self, X, y):
        if not hasattr(self, "oob_decision_function_"):
            return []
        means = self._unseen_means(X)
        claim = "out-of-bag probabilities are means over the members that have not seen a row"
        return [
            same(self.oob_decision_function_, means, "out-of-bag probabilities", claim),
            same(self.oob_score_, self._score_out_of_bag(means, y), "out-of-bag score", "the score of these"),
        ]

    def predict_proba(self, X):
        """Average the members' probabilities: (n_rows, K)."""
        shares, dtype = self._mean(X)
        return as_output(shares / shares.sum(axis=1, keepdims=True), dtype)

    def predict(self, X):
        """Give each row the class of highest mean probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]


class BaggingRegressor(Regressor, Bagging):
    """A mean of regressors, each fitted to rows drawn with replacement.

    Parameters
    ----------
    estimator : Any regressor, of lemmata or scikit-learn; None for a decision tree.
    n_estimators : Number of members.
    max_samples : Rows that a bag draws: a number, a share of the rows, or None for as many as there are.
    max_features : Columns of each member: a number or a share.
    bootstrap : Whether rows are drawn with replacement.
    bootstrap_features : Whether columns are.
    oob_score : "auto" tests each member on the rows that its bag left out, if any. True warns in addition if a row was never
        left out. A function of (y, prediction) takes the place of R². False leaves it.
    n_jobs : Threads; None for those of `lemmata.config`, −1 for all processors. The result is the same for any number.
    random_state : Seed, for the same bags and members again.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    estimator_ : The member before any fit; `estimators_` has the fitted ones.
    seeds_ : Seed of each member, from which its bag, its columns and its own chance are drawn.
    oob_score_ : R² of the out-of-bag predictions.
    oob_prediction_ : Mean over the members that have not seen a row; NaN if all have.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> model = BaggingRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> model.predict([[2.2]]).round(1), model.certify(X, y).holds
    (array([2.3]), True)
    """

    _default = DecisionTreeRegressor

    def __init__(
        self,
        estimator=None,
        n_estimators=10,
        *,
        max_samples=None,
        max_features=1.0,
        bootstrap=True,
        bootstrap_features=False,
        oob_score="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Draw the bags and fit the members."""
        return self._fit(X, y, sample_weight)

    def _rows(self, X, y, sample_weight, *, reset):
        X, y, weight = self._validated(partial(self._blocks, reset=reset), X, y, sample_weight)
        return X, np.asarray(y, dtype=np.float64), weight

    def _width(self):
        return 1

    def _usable(self, seed, y):
        return seed

    def _said(self, member, X):
        return np.asarray(member.predict(X), dtype=np.float64).reshape(-1, 1)

    def _keep_out_of_bag(self, X, y):
        self.oob_prediction_ = self._unseen_means(X)[:, 0]
        self._warn(~np.isnan(self.oob_prediction_))
        self.oob_score_ = self._score_out_of_bag(self.oob_prediction_, y)

    def _score_out_of_bag(self, prediction, y):
        unseen = ~np.isnan(prediction)
        if unseen.sum() < 2:  # R² needs two rows
            return np.nan
        return float((self.oob_score if callable(self.oob_score) else r2_score)(y[unseen], prediction[unseen]))

    def _out_of_bag_checks(self, X, y):
        if not hasattr(self, "oob_prediction_"):
            return []
        means = self._unseen_means(X)[:, 0]
        claim = "out-of-bag predictions are means over the members that have not seen a row"
        return [
            same(self.oob_prediction_, means, "out-of-bag predictions", claim),
            same(self.oob_score_, self._score_out_of_bag(means, y), "out-of-bag score", "the score of these"),
        ]

    def predict(self, X):
        """Average the members' predictions."""
        mean, dtype = self._mean(X)
        return as_output(mean[:, 0], dtype)
