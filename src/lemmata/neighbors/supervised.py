"""`KNeighborsClassifier` and `KNeighborsRegressor`: the vote and the mean of the k nearest rows.

A vote gives each class the share of the k places that its rows take; a mean averages their targets. With k = 1 rows that are
distinct are told without error; with k as large as the table every row gets the majority, or the mean: small k follows the
rows, large k smooths them. Leave one out: what would be said of a row of the table without it is the same search with one copy
of it less, so nothing is fitted anew.
A tied vote goes to the class whose places are nearer in sum, and if that is equal too, to the smaller label. So that the
most probable class is always the one predicted, the winner's probability is larger by one rounding.
Certificate: rows, targets and weights are kept to the bit, and the search finds what sorting finds (see `stored`).

Fix & Hodges, USAF School of Aviation Medicine, report 4 (1951); Cover & Hart, IEEE Trans. Inf. Theory 13 (1967).
"""

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.neighbors.nearest import COUNT, POWER
from lemmata.neighbors.places import neighbors_of, say, taken
from lemmata.neighbors.stored import Neighbors, differing, load

CONSTRAINTS = {"n_neighbors": [COUNT], "weights": [StrOptions({"uniform", "distance"}), callable], "p": [POWER]}


def voted(labels, weights, places, distance, n_classes):
    """Count votes, and give the class that wins each: of tied ones that whose places are nearer in sum, then the first.

    Parameters
    ----------
    labels, weights, places, distance : (m, K), of the neighbors of each of m rows.

    Returns
    -------
    votes : (m, n_classes).
    winner : (m,).

    Examples
    --------
    >>> voted(np.array([[1, 0, 0, 1]]), np.ones((1, 4)), np.ones((1, 4)), np.array([[1.0, 2.0, 3.0, 3.5]]), 2)
    (array([[2., 2.]]), array([1]))
    """
    m = len(labels)
    cell = (labels + n_classes * np.arange(m)[:, None]).ravel()
    votes = np.bincount(cell, weights.ravel(), m * n_classes).reshape(m, n_classes)
    paths = np.where(places > 0, places * distance, 0.0)
    far = np.bincount(cell, paths.ravel(), m * n_classes).reshape(m, n_classes)
    far = np.minimum(far, np.finfo(float).max)  # infinite is only who does not take part, below
    return votes, np.where(votes == votes.max(axis=1, keepdims=True), far, np.inf).argmin(axis=1)


def probabilities(votes, winner, dtype):
    """Turn votes into probabilities whose argmax is the winner: by one rounding, if it is tied.

    Examples
    --------
    >>> p = probabilities(np.array([[2.0, 2.0]]), np.array([1]), np.float64)
    >>> p, int(p.argmax())
    (array([[0.5, 0.5]]), 1)
    """
    p, rows = as_output(votes / votes.sum(axis=1, keepdims=True), dtype), np.arange(len(votes))
    tied = p.argmax(axis=1) != winner
    p[rows[tied], winner[tied]] = np.nextafter(p[tied].max(axis=1), np.dtype(dtype).type(2))
    return p


class Supervised(Neighbors):
    """What vote and mean share."""

    def __init__(self, n_neighbors=5, *, weights="uniform", p=2):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.p = p

    def _remember(self, rows, y, weight):
        """Keep rows, targets and weights."""
        if weight is not None and weight.sum() < self.n_neighbors <= len(weight):
            raise ValueError(
                f"The sample weights sum to {weight.sum():.3g}, which cannot fill n_neighbors={self.n_neighbors} places: "
                "a weight is a number of repetitions; multiply the weights so that they average 1."
            )
        self._keep(rows)
        self.y_, self.sample_weight_ = y, np.ones(len(y)) if weight is None else weight.astype(float)

    def _asked(self, X):
        """Give numbers, distances, places and weights of the neighbors of rows, or for None of rows left out; and the type."""
        Q, dtype = self._queries(X)
        less = None
        if Q is None:
            if self.n_samples_fit_ < 2 and self.sample_weight_[0] <= 1:
                raise ValueError("Leaving out the only row leaves nothing to predict from; fit at least two rows.")
            Q, less = self.X_, np.arange(self.n_samples_fit_)
        index, distance = neighbors_of(self._search(), self.n_neighbors + (X is None), self.sample_weight_, Q)
        places = taken(index, self.sample_weight_, self.n_neighbors, less)
        return index, distance, places, say(distance, places, self.weights), dtype

    def _kept_check(self, y, weight):
        """Check that targets and weights are those of the table."""
        weight = np.ones(len(y)) if weight is None else weight
        wrong = max(differing(self.y_, y), differing(self.sample_weight_, weight))
        return Check("targets", float(wrong), 0.0, "proof", "share of targets and weights kept that are not those of the table")


class KNeighborsClassifier(Supervised, Classifier):
    """Classify a row by a vote of the k nearest rows of the table.

    A tied vote goes to the class whose neighbors are nearer in sum (of their distances), and then to the smaller label; its
    probability is larger by one rounding, so that `predict` is always the argmax of `predict_proba`. Of equally distant rows
    the lower row number is nearer. The rows are kept, and needed together in memory, wherever they come from.

    Parameters
    ----------
    n_neighbors : Number k of places. A row of `sample_weight` s takes s of them; fewer than k rows all take part.
    weights : "uniform", each place has the same say; "distance", 1/distance, or all of it for rows at no distance; or a
        function that turns an array of distances into one of weights, at least 0 (where it makes all 0, all have the same say).
    p : Power of the distance, from 1 to infinity.

    Attributes
    ----------
    classes_ : Labels, sorted.
    X_ : (n_samples_fit_, n_features), the rows.
    y_ : (n_samples_fit_,), the numbers of their classes.
    sample_weight_ : (n_samples_fit_,), how many copies there are of each.
    n_samples_fit_ : Number of rows, not counting those of weight zero.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], ["a", "a", "b", "b"]
    >>> model = KNeighborsClassifier(n_neighbors=3).fit(X, y)
    >>> model.predict([[0.4], [3.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[0.4]]).round(3)
    array([[0.667, 0.333]])
    >>> model.leave_one_out()
    array(['b', 'b', 'a', 'a'], dtype='<U1')
    >>> print(model.certify(X, y))
    KNeighborsClassifier(n_neighbors=3): certificate holds (proof)
      check      value     limit  kind   claim
      rows       0.0e+00 ≤ 0e+00  proof  share of rows kept that are not those of the table
      targets    0.0e+00 ≤ 0e+00  proof  share of targets and weights kept that are not those of the table
      neighbors  0.0e+00 ≤ 0e+00  proof  share of all rows whose neighbors are not those found by sorting
    """

    _parameter_constraints = CONSTRAINTS

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Keep rows X and labels y; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator."""
        self._remember(*load(self._labeled(X, y, sample_weight, reset=True, order="C")))
        return self

    def predict_proba(self, X):
        """Give each class its share of the vote."""
        return self._vote(X)[0]

    def predict(self, X):
        """Give the class that wins the vote."""
        winner = self._vote(X)[1]
        return self.classes_[winner]

    def leave_one_out(self):
        """Predict each row of the table (of positive weight) from the others: from a table with one copy of it less."""
        winner = self._vote(None)[1]
        return self.classes_[winner]

    @property
    def _y(self):
        """The numbers of the classes by scikit-learn's name, which `theory.guarantee` reads."""
        return self.y_

    def _vote(self, X):
        index, distance, places, weights, dtype = self._asked(X)
        votes, winner = voted(self.y_[index], weights, places, distance, len(self.classes_))
        return probabilities(votes, winner, dtype), winner

    def certify(self, X, y=None, sample_weight=None):
        """Compare what is kept with the table, and the search with sorting."""
        check_is_fitted(self)
        rows, y, weight = load(self._labeled(X, y, sample_weight, reset=False, order="C"))
        return Certificate(self._rows_check(rows), self._kept_check(y, weight), self._search_check(), subject=repr(self))


class KNeighborsRegressor(Supervised, Regressor):
    """Predict the mean target of the k nearest rows of the table.

    Of equally distant rows the lower row number is nearer. The rows are kept, and needed together in memory, wherever they come
    from.

    Parameters
    ----------
    n_neighbors : Number k of places. A row of `sample_weight` s takes s of them; fewer than k rows all take part.
    weights : "uniform", each place counts the same; "distance", by 1/distance, or only rows at no distance if there are any; or
        a function that turns an array of distances into one of weights, at least 0 (where it makes all 0, all count the same).
    p : Power of the distance, from 1 to infinity.

    Attributes
    ----------
    X_ : (n_samples_fit_, n_features), the rows.
    y_ : (n_samples_fit_,) or (n_samples_fit_, n_targets), their targets.
    sample_weight_ : (n_samples_fit_,), how many copies there are of each.
    n_samples_fit_ : Number of rows, not counting those of weight zero.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [0.0, 1.0, 4.0, 16.0]
    >>> model = KNeighborsRegressor(n_neighbors=2).fit(X, y)
    >>> model.predict([[0.4], [3.5]])
    array([ 0.5, 10. ])
    >>> model.leave_one_out()
    array([2.5, 2. , 0.5, 2.5])
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = CONSTRAINTS

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Keep rows X and targets y, of one or several columns; a weight means repetition.

        X may also be a Parquet path, a Dask table, or an iterator.
        """
        self._remember(*self._table_of(X, y, sample_weight, reset=True))
        return self

    def _table_of(self, X, y, sample_weight, *, reset):
        rows, y, weight = load(self._blocks(X, y, sample_weight, reset=reset, order="C", multi_output=True))
        return rows, np.asarray(y, dtype=float), weight

    def predict(self, X):
        """Predict the mean of the neighbors' targets."""
        return self._mean(X)

    def leave_one_out(self):
        """Predict each row of the table (of positive weight) from the others: from a table with one copy of it less."""
        return self._mean(None)

    def _mean(self, X):
        index, _, _, weights, dtype = self._asked(X)
        targets = self.y_.reshape(len(self.y_), -1)[index]
        mean = np.einsum("ij,ijt->it", weights, targets) / weights.sum(axis=1, keepdims=True)
        return as_output(mean.reshape(len(mean), *self.y_.shape[1:]), dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Compare what is kept with the table, and the search with sorting."""
        check_is_fitted(self)
        rows, y, weight = self._table_of(X, y, sample_weight, reset=False)
        return Certificate(self._rows_check(rows), self._kept_check(y, weight), self._search_check(), subject=repr(self))
