"""Probabilities for scores of machines, by a link that changes no decision.

With two classes, p = σ(u·max(f, 0) + v·min(f, 0)) for slopes u, v ≥ 0: one half exactly where the score is zero, and monotone,
so that the more probable class is the one predicted. With more, p = softmax(t·scores) for t ≥ 0 has its largest entry where the
scores have. Platt's sigmoid has an offset, and pairwise coupling a vote of its own: both contradict `predict` [1]. The slopes
maximize the likelihood of scores that rows got from machines which had not seen them: five parts of the rows are left out in
turn. Equal rows are left out together, so that a weight means repetition here too. The likelihood is concave: Newton's method
finds it.

[1] Platt, in Advances in Large Margin Classifiers (1999); Wu, Lin & Weng, JMLR 5 (2004).
"""

import hashlib

import numpy as np
from scipy.special import expit, log_softmax, softmax

from lemmata.core.data import is_sparse

FOLDS = 5
STEPS = 100  # of Newton's method; ten are usual
PRIOR = 1e-3  # weight of a prior that keeps slopes finite where no score is on the wrong side, in rows


def folds_of(rows, labels, n_classes):
    """Return a number from 0 to 4 for each row: equal rows of a class share it, and every class is in all parts alike."""
    keys = [hashlib.blake2b(_bytes(rows, i), digest_size=8).digest() for i in range(rows.shape[0])]
    fold = np.zeros(len(keys), dtype=int)
    for c in range(n_classes):
        members = np.flatnonzero(labels == c)
        _, group = np.unique([keys[i] for i in members], return_inverse=True)
        fold[members] = group % FOLDS
    return fold


def _bytes(rows, i):
    if is_sparse(rows):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        order = np.argsort(rows.indices[part])
        return rows.indices[part][order].astype(np.int64).tobytes() + rows.data[part][order].tobytes()
    return rows[i].tobytes()


def scores_of_unseen(scores_without, rows, labels, n_classes):
    """Score each row by a machine that has not seen it; also tell which rows could be: all classes must be in the rest."""
    fold = folds_of(rows, labels, n_classes)
    scores, told = np.zeros((len(labels), n_classes) if n_classes > 2 else len(labels)), np.zeros(len(labels), dtype=bool)
    for number in range(FOLDS):
        left_out = fold == number
        if left_out.any() and len(np.unique(labels[~left_out])) == n_classes:
            scores[left_out] = scores_without(left_out)
            told |= left_out
    if not told.any():
        raise ValueError("probability=True needs at least two different rows of each class.")
    return scores, told


def features(scores):
    """Return what the slopes multiply, (n, classes, slopes): scores of the second of two classes, or of all."""
    if scores.ndim == 1:
        parts = np.column_stack([np.maximum(scores, 0.0), np.minimum(scores, 0.0)])
        return np.stack([np.zeros_like(parts), parts], axis=1)
    return scores[:, :, None]


def fit_link(scores, labels, weight, n_classes):
    """Fit the slopes, (2,) for two classes, else (1,), by Newton's method with halved steps; they stay positive.

    >>> fit_link(np.array([-2.0, -1.0, 1.0, 2.0, -0.5, 0.5]), np.array([0, 0, 1, 1, 1, 0]), np.ones(6), 2).round(2)
    array([1.35, 1.35])
    """
    F = features(scores)
    chosen = F[np.arange(len(labels)), labels]
    total = weight.sum()

    def objective(logs):
        slopes = np.exp(logs)
        logits = F @ slopes
        own = log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
        return -float(weight @ own) / total + PRIOR / total * float(logs @ logs) / 2

    logs = np.zeros(F.shape[2])
    for _ in range(STEPS):
        slopes = np.exp(logs)
        P = softmax(F @ slopes, axis=1)
        mean = np.einsum("nk,nks->ns", P, F)
        gradient = weight @ (mean - chosen) / total
        spread = F - mean[:, None, :]
        hessian = np.einsum("n,nk,nks,nkt->st", weight, P, spread, spread) / total
        gradient, hessian = slopes * gradient + PRIOR / total * logs, _curved(hessian, slopes, gradient, PRIOR / total)
        step = -np.linalg.solve(hessian, gradient)
        size, here = 1.0, objective(logs)
        while objective(logs + size * step) > here + 1e-4 * size * float(gradient @ step) and size > 1e-10:
            size /= 2
        logs = logs + size * step
        if np.abs(size * step).max() < 1e-10:
            break
    return np.exp(logs)


def _curved(hessian, slopes, gradient, prior):
    """Return the second derivatives in the logarithms of the slopes, made positive where they are not."""
    H = slopes[:, None] * hessian * slopes + np.diag(slopes * gradient) + prior * np.eye(len(slopes))
    values, vectors = np.linalg.eigh(H)
    return (vectors * np.maximum(np.abs(values), 1e-8)) @ vectors.T


def probabilities(scores, slopes):
    """Return the probability of each class, (n, k)."""
    if scores.ndim == 1:
        second = expit(features(scores)[:, 1] @ slopes)
        return np.column_stack([1 - second, second])
    return softmax(slopes[0] * scores, axis=1)
