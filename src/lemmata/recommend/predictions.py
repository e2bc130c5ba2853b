"""What a factorization says: expected ratings with their variance, what to recommend, what is alike, and who is new.

About the maximum, the posterior of one user's parameters given the items is normal with covariance σ²(λσ²I + Σ wwᵀ)⁻¹, w =
(vⱼ, 1), and likewise for items: the diagonal blocks of Laplace's approximation. With both sides independent, the rating of a
pair has the variance

    σ² + wᵀΣ_u w + xᵀΣ_v x + tr Σ_u Σ_v,    w = (v, 1), x = (u, 1),

the last over factors alone. Who was never seen has the mean 0 and the covariance I/λ of the prior, so that of a stranger only
the mean and the bias of the item are said, with the doubt that is due.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lemmata.core import config
from lemmata.core.data import is_dask
from lemmata.core.estimator import as_output
from lemmata.core.threads import run, serial_blas
from lemmata.recommend.alternating import Model, columns_of, half_sweep, implicit_rows, ridge_block
from lemmata.recommend.ratings import identities, learn, places, read
from lemmata.recommend.ridge_rows import inverse_rows
from lemmata.recommend.shards import RatingBlocks, rows_of

PAIRS = 1 << 14  # pairs, or users, worked on at once: their rows of factors fit the cache


class FoldedIn(NamedTuple):
    """New users or items: their ids, factors and biases."""

    ids: Any
    factors: Any
    biases: Any


def _is_explicit(model):
    if model.implicit:
        raise AttributeError("Amounts of attention are not normal about what is expected: there is no predictive distribution.")
    return True


class Predictions:
    """Mixin of a fitted factorization: everything that follows from its attributes."""

    def _triples(self, X, y=None, sample_weight=None, *, rated=True):
        """Read ratings or pairs, from Dask's partitions too."""
        if is_dask(X):
            X, y, sample_weight = (a.compute() if is_dask(a) else a for a in (X, y, sample_weight))
        return read(X, y, sample_weight, columns=tuple(self.columns), rated=rated)

    def _places(self, X):
        """Look up the users and items of pairs; −1 for unknown ones."""
        check_is_fitted(self)
        pairs = self._triples(X, rated=False)
        return places(self.users_, pairs.users), places(self.items_, pairs.items)

    def _side(self, name):
        """Return factors with biases of "user" or "item" in float64, and a row of zeros at the end for unknown ones."""
        factors, biases = getattr(self, f"{name}_factors_"), getattr(self, f"{name}_biases_")
        ids = getattr(self, f"{name}s_")
        if factors.shape != (len(ids), self.n_components) or biases.shape != (len(ids),):
            raise ValueError(f"{name}_factors_ or {name}_biases_ has a shape that is not that of a fit.")
        return np.vstack([np.column_stack([factors, biases]), np.zeros(self.n_components + 1)]).astype(float)

    def _means(self, user, item):
        """Expected ratings of pairs of places."""
        users, items = self._side("user"), self._side("item")
        out = np.empty(len(user))
        for start in range(0, len(user), PAIRS):
            here = slice(start, start + PAIRS)
            u, v = users[user[here]], items[item[here]]
            out[here] = self.mean_ + u[:, -1] + v[:, -1] + np.einsum("ij,ij->i", u[:, :-1], v[:, :-1])
        return out

    def predict(self, X):
        """Predict the rating of each pair of a user and an item.

        Of an unknown user or item nothing but the mean is known: it gets the mean rating plus the bias of the other.
        """
        return as_output(self._means(*self._places(X)), self.user_factors_.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give R², the share of the ratings' variance that is explained."""
        ratings = self._triples(X, y, sample_weight)
        pairs = np.column_stack([ratings.users.astype(object), ratings.items.astype(object)])
        return r2_score(ratings.values, self.predict(pairs), sample_weight=ratings.weights)

    def rmse(self, X, y=None, sample_weight=None):
        """Give the root of the mean squared error of the expected ratings."""
        check_is_fitted(self)
        ratings = self._triples(X, y, sample_weight)
        means = self._means(places(self.users_, ratings.users), places(self.items_, ratings.items))
        return float(np.sqrt(np.average((ratings.values - means) ** 2, weights=ratings.weights)))

    def _inverses(self, name, rows):
        """Give the covariance of each of these users or items over σ², the prior's for −1; biases last, if there are any."""
        if self.seen_ is None:
            raise ValueError("The variance of a prediction needs who rated what: fit with keep_ratings=True.")
        by_user = name == "user"
        seen = (self.seen_ if by_user else self.seen_.T).tocsr()
        table = self._side("item" if by_user else "user")[:-1]
        table = columns_of(table, True) if self.biases else np.ascontiguousarray(table[:, :-1])
        precision = self._precision()[0 if by_user else 1]
        counts = np.maximum(np.asarray(seen.sum(axis=1)).ravel(), 1.0) if self.scale_by_counts else np.ones(seen.shape[0])
        indptr = np.append(seen.indptr, seen.indptr[-1])  # one row without ratings, of which the prior says everything
        ridge = np.append(counts, 1.0) * precision * self.noise_variance_
        rows = np.where(rows < 0, len(counts), rows)
        if (rows == len(counts)).any() and precision == 0:
            raise ValueError(f"With prior_precision=0 nothing is known of an unknown {name}: its variance is infinite.")
        out = np.empty((len(rows), table.shape[1], table.shape[1]))

        def work(here):
            inverse_rows(rows[here], indptr, seen.indices, seen.data, table, ridge, out[here])

        run(work, [slice(start, start + 64) for start in range(0, len(rows), 64)], config.n_threads())
        return out

    def _variances(self, user, item):
        """Variance of what is expected of pairs of places, noise not included."""
        k = self.n_components
        users, items = self._side("user"), self._side("item")
        (some_users, of_user), (some_items, of_item) = (np.unique(a, return_inverse=True) for a in (user, item))
        by_user, by_item = self._inverses("user", some_users), self._inverses("item", some_items)
        out = np.empty(len(user))
        for start in range(0, len(user), PAIRS // 16):  # whose covariances are gathered
            here = slice(start, start + PAIRS // 16)
            P, Q = by_user[of_user[here]], by_item[of_item[here]]
            x, w = users[user[here]], items[item[here]]
            x[:, k] = w[:, k] = 1.0
            d = P.shape[1]
            x, w = x[:, :d], w[:, :d]
            quadratic = np.einsum("ij,ijk,ik->i", w, P, w) + np.einsum("ij,ijk,ik->i", x, Q, x)
            both = np.einsum("ijk,ijk->i", P[:, :k, :k], Q[:, :k, :k])
            out[here] = self.noise_variance_ * quadratic + self.noise_variance_**2 * both
        return out

    @available_if(_is_explicit)
    def predict_dist(self, X):
        """Give the posterior predictive distribution of the rating of each pair, as a frozen `scipy.stats.norm`."""
        user, item = self._places(X)
        with serial_blas():
            return norm(self._means(user, item), np.sqrt(self.noise_variance_ + self._variances(user, item)))

    @available_if(_is_explicit)
    def predict_interval(self, X, level=0.9):
        """Give the central interval that holds the rating of each pair with this probability: (n_pairs, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        law = self.predict_dist(X)
        return as_output(np.column_stack(law.interval(level)), self.user_factors_.dtype)

    def _known(self, ids, name):
        """Look up ids that must be known; also tell whether there was a single one."""
        single = np.ndim(ids) == 0
        at = places(getattr(self, f"{name}s_"), identities(np.atleast_1d(np.asarray(ids)), name))
        if (at < 0).any():
            other = "recommend_for or fold_in_users" if name == "user" else "fold_in_items"
            raise ValueError(f"The fit knows no {name} {np.atleast_1d(np.asarray(ids))[at < 0][0]!s}; {other} takes new ones.")
        return at, single

    def item_scores(self, users):
        """Give the expected rating of every item by each of these users: (n_users, n_items)."""
        check_is_fitted(self)
        at, _ = self._known(users, "user")
        return as_output(self._scores(self._side("user")[at]), self.user_factors_.dtype)

    def _scores(self, rows):
        """Expected rating of every item for factors with biases."""
        items = self._side("item")[:-1]
        with serial_blas():
            return rows[:, :-1] @ items[:, :-1].T + (self.mean_ + rows[:, -1:] + items[:, -1])

    def recommend(self, users, n=10, *, exclude_seen=True):
        """Name the n items that a user would rate highest, and their expected ratings.

        Parameters
        ----------
        users : A user, or several: then the results have one row for each.
        exclude_seen : Whether to leave out what the user has rated. Where fewer than n items are left, one user gets fewer, and
            the rows of several end with the score −∞.
        """
        check_is_fitted(self)
        at, single = self._known(users, "user")
        if exclude_seen and self.seen_ is None:
            raise ValueError("To leave out what was rated needs who rated what: fit with keep_ratings=True.")
        parts = []
        for start in range(0, len(at), PAIRS // 16):
            here = at[start : start + PAIRS // 16]
            scores = self._scores(self._side("user")[here])
            if exclude_seen:
                row, column = self.seen_[here].nonzero()
                scores[row, column] = -np.inf
            parts.append(self._best(scores, n))
        items, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self._only_finite(items[0], scores[0]) if single else (items, scores)

    def _best(self, scores, n):
        """Name the n items with the highest scores in each row; among equals the first."""
        if not n >= 1:
            raise ValueError(f"n must be at least 1, got {n!r}.")
        n = min(n, scores.shape[1])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        return self.items_[order], as_output(np.take_along_axis(scores, order, axis=1), self.user_factors_.dtype)

    @staticmethod
    def _only_finite(items, scores):
        there = np.isfinite(scores)
        return items[there], scores[there]

    def recommend_for(self, items, ratings=None, n=10, *, exclude_seen=True):
        """Recommend to somebody new, who gave these items these ratings (or used them, if feedback is implicit)."""
        check_is_fitted(self)
        items = np.atleast_1d(np.asarray(items))
        if ratings is None:
            if not self.implicit:
                raise ValueError("Give the ratings of the items too; only implicit feedback can do without.")
            ratings = np.ones(len(items))
        new = self.fold_in_users(np.column_stack([np.zeros(len(items), dtype=object), items.astype(object)]), ratings)
        scores = self._scores(np.column_stack([new.factors, new.biases]).astype(float))
        if exclude_seen:
            scores[0, self._known(items, "item")[0]] = -np.inf
        return self._only_finite(*(a[0] for a in self._best(scores, n)))

    def similar_items(self, item, n=10):
        """Name the n items whose factors point most nearly the same way, and the cosines of the angles."""
        check_is_fitted(self)
        at, _ = self._known(item, "item")
        factors = self.item_factors_.astype(float)
        lengths = np.linalg.norm(factors, axis=1)
        with serial_blas():
            cosines = factors @ factors[at[0]] / np.maximum(lengths * lengths[at[0]], np.finfo(float).tiny)
        cosines[at[0]] = -np.inf
        return self._only_finite(*(a[0] for a in self._best(cosines[None], n)))

    def fold_in_users(self, X, y=None, sample_weight=None):
        """Give factors and biases of new users from their ratings of known items; the fit stays as it is."""
        return self._fold_in(X, y, sample_weight, 0)

    def fold_in_items(self, X, y=None, sample_weight=None):
        """Give factors and biases of new items from the ratings of them by known users; the fit stays as it is."""
        return self._fold_in(X, y, sample_weight, 1)

    def _fold_in(self, X, y, sample_weight, side):
        """Solve the ridge problems of new users (side 0) or items (side 1)."""
        check_is_fitted(self)
        ratings = learn(self._triples(X, y, sample_weight))
        new, known = (ratings.users, ratings.items) if side == 0 else (ratings.items, ratings.users)
        at, _ = self._known(known, "item" if side == 0 else "user")
        row, column = (ratings.user, at[ratings.item]) if side == 0 else (ratings.item, at[ratings.user])
        other = self._side("item" if side == 0 else "user")[:-1]
        rows = rows_of(row, column, ratings.values, ratings.weights, len(new), len(other))
        counts = np.bincount(row, ratings.weights, minlength=len(new)) if self.scale_by_counts else np.ones(len(new))
        if self.implicit:
            rows = implicit_rows(rows, self.confidence)
        biased = self.biases and not self.implicit
        other = other if biased else np.ascontiguousarray(other[:, :-1])
        ridge = self._precision()[side] * self.noise_variance_ * counts
        model = Model(None, None, None, None, self.mean_, biased, self.implicit, ridge_block, 0.0, 0.0)
        with serial_blas():
            found = half_sweep(model, RatingBlocks(rows, len(other)), other, ridge, np.zeros((len(new), other.shape[1])))[0]
        factors, biases = (found[:, :-1], found[:, -1]) if biased else (found, np.zeros(len(new)))
        dtype = self.user_factors_.dtype
        return FoldedIn(new, as_output(factors, dtype), as_output(biases, dtype))
