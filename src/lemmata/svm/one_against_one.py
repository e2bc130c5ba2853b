"""Several classes by one machine for each two of them: how coefficients are laid out, and how votes become scores.

Support vectors stand class after class, and a row of `dual_coef_` holds, for a support vector of class i, its coefficient in
the machine of i and the r-th of the other classes, as in libsvm. Each machine votes for one class; a class's score is its
number of votes plus less than a third for how sure the machines were, so that equal numbers of votes are told apart, and the
class with the highest score is predicted: there is no second rule.
"""

import numpy as np


def pairs_of(n_classes):
    """Return the pairs of classes (i, j), i < j; the machine of a pair is positive for i. Two classes have (1, 0).

    >>> pairs_of(2), pairs_of(3)
    ([(1, 0)], [(0, 1), (0, 2), (1, 2)])
    """
    if n_classes == 2:
        return [(1, 0)]
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def laid_out(coefficients, labels, n_classes):
    """Lay coefficients of machines, (n rows, pairs), out as `dual_coef_`.

    Returns
    -------
    support : Numbers of the support vectors, class after class.
    dual : (classes − 1, support vectors).
    counts : Support vectors of each class.
    """
    used = np.flatnonzero(coefficients.any(axis=1))
    support = used[np.argsort(labels[used], kind="stable")]
    counts = np.bincount(labels[support], minlength=n_classes).astype(np.int32)
    if n_classes == 2:
        return support, coefficients[support].T.copy(), counts
    dual = np.zeros((n_classes - 1, len(support)))
    own = labels[support]
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        dual[j - 1, own == i] = coefficients[support[own == i], p]
        dual[i, own == j] = coefficients[support[own == j], p]
    return support, dual, counts


def by_machine(dual, counts):
    """Return the coefficients of each machine, (support vectors, pairs), from `dual_coef_` and `n_support_`."""
    n_classes = len(counts)
    if n_classes == 2:
        return np.ascontiguousarray(dual.T)
    own = np.repeat(np.arange(n_classes), counts)
    pairs = pairs_of(n_classes)
    coefficients = np.zeros((dual.shape[1], len(pairs)))
    for p, (i, j) in enumerate(pairs):
        coefficients[own == i, p] = dual[j - 1, own == i]
        coefficients[own == j, p] = dual[i, own == j]
    return coefficients


def class_scores(scores, n_classes):
    """Turn the scores of machines, (n, pairs), into scores of classes, (n, classes): votes, and how sure they are.

    >>> class_scores(np.array([[1.0, 0.5, -1.0]]), 3).argmax(axis=1)
    array([0])
    """
    votes, sure = np.zeros((2, len(scores), n_classes))
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        first = scores[:, p] > 0
        votes[:, i] += first
        votes[:, j] += ~first
        sure[:, i] += scores[:, p]
        sure[:, j] -= scores[:, p]
    return votes + sure / (3 * (np.abs(sure) + 1))
