"""How good recommendations are: ranking metrics over interactions that were held out.

Every user ranks all items that were not seen in training by their scores, equal scores by the number of the item; relevant
are the held-out items. With rel(p) = 1 where place p of the ranking is relevant, and R relevant items in all,

    precision@k = Σ_{p≤k} rel(p)/k,    recall@k = Σ_{p≤k} rel(p)/R,    reciprocal rank = 1/(first relevant place),
    average precision = (1/R) Σ_p rel(p)·precision@p,    AUC = share of (relevant, other) pairs in the right order,
    NDCG@k = Σ_{p≤k} g(p)/log₂(p + 1) over the same sum of the best ranking, g the held-out values.

All are averaged over the users with at least one relevant item. Scores are a fitted model, or an array (n_users, n_items).
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import rankdata

from lemmata.core.data import is_sparse
from lemmata.recommend.ratings import places

USERS = 256  # ranked at once


def precision_at_k(scores, held_out, k=10, *, exclude="seen"):
    """Share of the first k recommendations that are relevant.

    Parameters
    ----------
    scores : A fitted `ProbabilisticMatrixFactorization`, or an array (n_users, n_items).
    held_out : Relevant pairs: a sparse matrix of users × items whose positive entries are relevant, or, for a model, anything
        that it can be fitted to. Users and items that the model does not know are left out.
    k : Length of the list.
    exclude : What is not recommended: "seen" (what the model was fitted to), a sparse matrix of users × items, or None.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.8, 0.7, 0.1]])
    >>> precision_at_k(scores, csr_array([[0, 1, 0, 1]]), k=2, exclude=csr_array([[1, 0, 0, 0]]))
    0.5
    """
    return _mean(partial(_precision, k=_length(k)), scores, held_out, exclude)


def recall_at_k(scores, held_out, k=10, *, exclude="seen"):
    """Share of the relevant items that are among the first k; parameters as of `precision_at_k`.

    Examples
    --------
    >>> recall_at_k(np.array([[0.9, 0.8, 0.7, 0.1]]), csr_array([[0, 1, 0, 1]]), k=3)
    0.5
    """
    return _mean(partial(_recall, k=_length(k)), scores, held_out, exclude)


def ndcg_at_k(scores, held_out, k=10, *, exclude="seen"):
    """Discounted cumulative gain of the first k, over the best possible; parameters as of `precision_at_k`.

    Examples
    --------
    >>> round(ndcg_at_k(np.array([[0.9, 0.8, 0.7]]), csr_array([[0, 3, 1]]), k=3), 4)
    0.6591
    """
    return _mean(partial(_ndcg, k=_length(k)), scores, held_out, exclude)


def average_precision(scores, held_out, *, exclude="seen"):
    """Precision at the place of each relevant item, averaged (MAP); parameters as of `precision_at_k`.

    Examples
    --------
    >>> average_precision(np.array([[0.9, 0.8, 0.7, 0.1]]), csr_array([[0, 1, 0, 1]]))
    0.5
    """
    return _mean(_average_precision, scores, held_out, exclude)


def mean_reciprocal_rank(scores, held_out, *, exclude="seen"):
    """One over the place of the first relevant item; parameters as of `precision_at_k`.

    Examples
    --------
    >>> mean_reciprocal_rank(np.array([[0.9, 0.8, 0.7, 0.1]]), csr_array([[0, 1, 0, 1]]))
    0.5
    """
    return _mean(_reciprocal_rank, scores, held_out, exclude)


def auc(scores, held_out, *, exclude="seen"):
    """Chance that a relevant item stands before another one; users for whom everything is relevant are left out.

    Examples
    --------
    >>> auc(np.array([[0.9, 0.8, 0.7, 0.1]]), csr_array([[0, 1, 0, 1]]))
    0.25
    """
    return _mean(_auc, scores, held_out, exclude)


def _length(k):
    if not k >= 1:
        raise ValueError(f"k must be at least 1, got {k!r}.")
    return int(k)


def _mean(metric, scores, held_out, exclude):
    """Average a metric of (scores, gains of the items, both without what is excluded) over users with something relevant."""
    model = None if isinstance(scores, np.ndarray) else scores
    shape = scores.shape if model is None else (len(model.users_), len(model.items_))
    held_out = _matrix(model, held_out, shape, "held_out")
    if isinstance(exclude, str):
        if exclude != "seen":
            raise ValueError(f"exclude must be 'seen', a sparse matrix or None; got {exclude!r}.")
        exclude = None if model is None else model.seen_
        if model is not None and exclude is None:
            raise ValueError("To leave out what was seen, fit with keep_ratings=True, or give it as exclude.")
    hidden = None if exclude is None else _matrix(model, exclude, shape, "exclude")
    with_some = np.flatnonzero(np.diff(held_out.indptr))
    values = []
    for start in range(0, len(with_some), USERS):
        rows = with_some[start : start + USERS]
        block = scores[rows] if model is None else model.item_scores(model.users_[rows])
        for i, row in enumerate(rows):
            gains = np.zeros(shape[1])
            gains[held_out.indices[held_out.indptr[row] : held_out.indptr[row + 1]]] = held_out.data[
                held_out.indptr[row] : held_out.indptr[row + 1]
            ]
            there = np.ones(shape[1], dtype=bool)
            if hidden is not None:
                there[hidden.indices[hidden.indptr[row] : hidden.indptr[row + 1]]] = False
            if gains[there].any():
                values.append(metric(block[i][there], gains[there]))
    values = [value for value in values if value is not None]
    if not values:
        raise ValueError("No user has a held-out item that could be recommended.")
    return float(np.mean(values))


def _matrix(model, pairs, shape, name):
    """Give relevant pairs as a CSR matrix with positive entries only."""
    if not is_sparse(pairs):
        if model is None:
            raise ValueError(f"With an array of scores, {name} must be a sparse matrix of users × items.")
        triples = model._triples(pairs)
        user, item = places(model.users_, triples.users), places(model.items_, triples.items)
        known = (user >= 0) & (item >= 0)
        pairs = csr_array((triples.values[known], (user[known], item[known])), shape=shape)
    if pairs.shape != shape:
        raise ValueError(f"{name} has the shape {pairs.shape}, and the scores {shape}.")
    pairs = csr_array(pairs, copy=True)
    pairs.sum_duplicates()
    pairs.data = np.where(pairs.data > 0, pairs.data, 0)
    pairs.eliminate_zeros()
    return pairs


def _ranked(scores, gains):
    """Gains in the order of falling scores."""
    return gains[np.argsort(-scores, kind="stable")]


def _precision(scores, gains, k):
    return np.count_nonzero(_ranked(scores, gains)[:k]) / k


def _recall(scores, gains, k):
    return np.count_nonzero(_ranked(scores, gains)[:k]) / np.count_nonzero(gains)


def _ndcg(scores, gains, k):
    discounts = 1 / np.log2(np.arange(2, min(k, len(gains)) + 2))
    return _ranked(scores, gains)[:k] @ discounts / (np.sort(gains)[::-1][:k] @ discounts)


def _average_precision(scores, gains):
    at = np.flatnonzero(_ranked(scores, gains))
    return np.mean(np.arange(1, len(at) + 1) / (at + 1))


def _reciprocal_rank(scores, gains):
    return 1 / (np.flatnonzero(_ranked(scores, gains))[0] + 1)


def _auc(scores, gains):
    relevant = gains > 0
    n, m = np.count_nonzero(relevant), np.count_nonzero(~relevant)
    return (rankdata(scores)[relevant].sum() - n * (n + 1) / 2) / (n * m) if m else None
