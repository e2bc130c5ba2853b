"""Slow twins of the counting models, written for reading: dictionaries, loops, and sums over all that could be missing."""

from itertools import product
from math import exp, isnan, log

import numpy as np


def class_weights(y, weight):
    """Weight of each class, in the order of the classes."""
    return {c: sum(w for label, w in zip(y, weight, strict=True) if label == c) for c in sorted(set(y))}


def table(X, y, weight, j, values):
    """Weight of each value of column j in each class, over the rows in which it is seen."""
    found = {c: dict.fromkeys(values, 0.0) for c in sorted(set(y))}
    for row, label, w in zip(X, y, weight, strict=True):
        if not isnan(row[j]):
            found[label][row[j]] += w
    return found


def smoothed(counts, alpha):
    """Relative frequencies with alpha imaginary observations of each value."""
    total = sum(counts.values()) + alpha * len(counts)
    return {value: (count + alpha) / total for value, count in counts.items()}


def joint(X, prior, chances):
    """p(x, c) for rows with holes, (rows, classes): sums over all that the holes could hold.

    Parameters
    ----------
    prior : {class: probability}.
    chances : For each column, {class: {value: probability}}.
    """
    out = np.zeros((len(X), len(prior)))
    for i, row in enumerate(X):
        for k, c in enumerate(prior):
            options = [chances[j][c] if isnan(v) else [v] for j, v in enumerate(row)]
            for full in product(*options):
                p = prior[c]
                for j, v in enumerate(full):
                    p *= chances[j][c][v]
                out[i, k] += p
    return out


def holes_objective(theta, rows, alpha):
    """Log-likelihood of rows with holes, each given the total of what is seen of it, plus the prior; up to constants."""
    value = float(np.sum(alpha * np.log(theta)))
    for row, w in rows:
        seen = ~np.isnan(row)
        value += w * float(row[seen] @ np.log(theta[seen] / theta[seen].sum())) if seen.any() else 0.0
    return value


def sum_over_lengths(row, theta, most=4000):
    """Sum the multinomial chances of all rows that agree with what is seen, over lengths N with the weight 1/N.

    The missing columns count as one, whose share is the sum of theirs.
    """
    seen = ~np.isnan(row)
    n, gone = row[seen].sum(), theta[~seen].sum()
    logs = []
    base = float(row[seen] @ np.log(theta[seen]))
    coefficient = 0.0  # log of (n + m)! / (n! m!)
    for m in range(most):
        if m:
            coefficient += log(n + m) - log(m)
        logs.append(coefficient + m * log(gone) + base - log(n + m) if gone else (base - log(n) if m == 0 else -np.inf))
    top = max(logs)
    return top + log(sum(exp(v - top) for v in logs))
