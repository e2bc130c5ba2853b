"""The formulas of the bootstrap's error: from the losses of rows out of bags to the .632+ estimate and its standard error.

Q_bi is the loss of row i under the fit to bag b, N_bi how often the bag has the row, I_bi whether it does not. Then [1, 2]
    Ê_i = Σ_b I_bi Q_bi / Σ_b I_bi,    Err₁ = mean of Ê_i    (the leave-one-out bootstrap),
pessimistic since a bag has 0.632 n different rows, while the apparent error err of the fit to all rows is optimistic:
    .632:     Err = 0.368 err + 0.632 Err₁
    .632+:    Err + (Err₁′ − err) 0.368 · 0.632 R′ / (1 − 0.368 R′),    that is weight 0.632/(1 − 0.368 R′) in place of 0.632,
with Err₁′ = min(Err₁, γ) and R′ = (Err₁′ − err)/(γ − err), the relative overfitting: 0 for none (also if Err₁ or γ is not
above err), 1 where the model does as badly as if rows and targets had nothing to do with each other. That is γ, the mean loss
over all pairs of a target and a prediction.
The standard error is that of Err₁, by the infinitesimal jackknife: how it changes as row j gets more weight is [2]
    n D_j = (2 + 1/(n − 1)) (Ê_j − Err₁) + n e Cov_b(N_bj, q_b),    q_b = Σ_i I_bi Q_bi / n,    e = (1 − 1/n)⁻ⁿ,
and the variance is Σ D_j². With B bags each D_j is an average of B terms and has noise, whose squares add up to a bias that is
as large as the variance itself when B is near n; the variance of these averages is subtracted [3].

[1] Efron, JASA 78 (1983). [2] Efron & Tibshirani, JASA 92 (1997). [3] Wager, Hastie & Efron, JMLR 15 (2014).
"""

import numpy as np

IN_BAG, OUT = 0.368, 0.632  # as in the papers; 1/e and 1 − 1/e


def zero_one(y, prediction):
    """Give 1 where a label is wrong."""
    return (y != prediction).astype(float)


def squared(y, prediction):
    """Give squared errors."""
    return (y - prediction) ** 2


def no_information(loss, y, prediction):
    """Average a loss over all pairs of a target and a prediction.

    Examples
    --------
    >>> no_information(zero_one, np.array([0, 0, 1]), np.array([0, 1, 1]))  # 2/3 · 2/3 + 1/3 · 1/3
    0.5556
    """
    if loss is squared:
        return float(y.var() + prediction.var() + (y.mean() - prediction.mean()) ** 2)
    values, counts = np.unique(y, return_counts=True)
    means = [loss(np.full(len(prediction), value), prediction).mean() for value in values]
    return float(np.average(means, weights=counts))


def point_632_plus(apparent, out_of_bag, gamma):
    """Give (R′, weight, .632 estimate, .632+ estimate).

    Examples
    --------
    >>> point_632_plus(0.0, 0.5, 0.5)  # one nearest neighbor, labels that are noise
    (1.0, 1.0, 0.316, 0.5)
    """
    clipped = min(out_of_bag, gamma)
    overfitting = (clipped - apparent) / (gamma - apparent) if clipped > apparent else 0.0
    err632 = IN_BAG * apparent + OUT * out_of_bag
    plus = err632 + (clipped - apparent) * IN_BAG * OUT * overfitting / (1 - IN_BAG * overfitting)
    return overfitting, OUT / (1 - IN_BAG * overfitting), err632, plus


def row_errors(losses):
    """Average the losses of each row over the fits that have not seen it; NaN for a row in every bag.

    Examples
    --------
    >>> row_errors(np.array([[1.0, np.nan], [0.0, np.nan]]))
    array([0.5, nan])
    """
    seen = ~np.isnan(losses)
    total = np.where(seen, losses, 0.0).sum(axis=0)
    return np.divide(total, seen.sum(axis=0), out=np.full(losses.shape[1], np.nan), where=seen.any(axis=0))


def row_weights(counts, losses):
    """Give how the leave-one-out bootstrap error changes with the weight of each row, D_j, and the noise of these numbers.

    Parameters
    ----------
    counts, losses : (bags, rows), how often a bag has a row, and the loss of a row that it does not have, else NaN.

    Returns
    -------
    change, noise : (rows,), D_j, and the variance that it has by the chance of the bags.
    """
    n_bags, n = counts.shape
    out, errors = counts == 0, row_errors(losses)
    q = np.where(out, losses, 0.0).mean(axis=1)
    e, slope = (1 - 1 / n) ** -n, (2 + 1 / (n - 1)) / n
    own = np.where(out, losses - errors, 0.0) / out.mean(axis=0)  # what a bag adds to Ê_i
    together = (counts - counts.mean(axis=0)) * (q - q.mean())[:, None]
    change = slope * (errors - errors.mean()) + e * together.mean(axis=0)
    terms = slope * (own - own.mean(axis=1, keepdims=True)) + e * (together - together.mean(axis=0))
    return change, (terms**2).mean(axis=0) / max(n_bags - 1, 1)


def standard_error(counts, losses):
    """Give the standard error of the leave-one-out bootstrap error; NaN if the noise of the bags hides it."""
    if np.isnan(row_errors(losses)).any():
        return np.nan
    change, noise = row_weights(counts, losses)
    variance = (change**2).sum() - noise.sum()
    return float(np.sqrt(variance)) if variance > 0 or not change.any() else np.nan


def squared_parts(y, predictions):
    """Split the squared error of each row into (variance, bias² + noise), by its predictions from bags without it.

    Parameters
    ----------
    predictions : (bags, rows), NaN where the bag has the row.

    Examples
    --------
    >>> squared_parts(np.array([1.0]), np.array([[2.0], [4.0]]))  # 2 and 2² − 2/2, together the mean of 1² and 3²
    (array([2.]), array([3.]))
    """
    seen = ~np.isnan(predictions)
    m = seen.sum(axis=0).astype(float)
    mean = np.where(seen, predictions, 0.0).sum(axis=0) / np.where(m > 0, m, np.nan)
    total = np.where(seen, (predictions - mean) ** 2, 0.0).sum(axis=0)
    variance = total / np.where(m > 1, m - 1, np.nan)
    if (m > 1).any():  # of a row that a single bag leaves out nobody knows how predictions vary: as those of the others do
        variance[m == 1] = variance[m > 1].mean()
    return variance, (y - mean) ** 2 + total / m - variance


def zero_one_parts(labels, y, predictions, seen):
    """Split the share of wrong labels of each row into (variance, bias and noise): what the most frequent label gets wrong.

    Variance is the rest, negative where to vary is to be right at times.

    Examples
    --------
    >>> labels, y = np.array(["a", "b"]), np.array(["a"])
    >>> zero_one_parts(labels, y, np.array([["b"], ["b"], ["a"]]), np.ones((3, 1), dtype=bool))
    (array([-0.333]), array([1.]))
    """
    votes = np.stack([((predictions == label) & seen).sum(axis=0) for label in labels])
    share = np.divide(votes, seen.sum(axis=0), out=np.full(votes.shape, np.nan), where=seen.any(axis=0))
    wrong = (labels[votes.argmax(axis=0)] != y).astype(float)
    right = share[np.searchsorted(labels, y), np.arange(len(y))]
    return (1 - right) - wrong, wrong + 0 * right
