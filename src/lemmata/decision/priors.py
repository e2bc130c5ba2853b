"""Class priors that changed: exact correction of a posterior, and estimation of the new priors without labels.

If the classes occur with other shares π′ than in training, π, and look the same within each class, p′(x|k) = p(x|k), then by
Bayes' rule p′(k|x) ∝ p(k|x) π′ₖ/πₖ: nothing has to be fitted again. Unknown π′ are found from unlabeled rows by maximum
likelihood, Σᵢ log Σₖ π′ₖ p(k|xᵢ)/πₖ, which is concave in π′; EM climbs it [1]: correct the posteriors by the current π′, take
their means for the next. Its fixed point is certified by the gap maxₖ gₖ − 1, where gₖ = meanᵢ of (p(k|xᵢ)/πₖ) / Σⱼ π′ⱼ
p(j|xᵢ)/πⱼ: no priors raise the mean log likelihood by more.

[1] Saerens, Latinne & Decaestecker, Neural Comput. 14 (2002).
"""

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.iterate import iterate
from lemmata.decision.risk import SUM, checked_posterior


def checked_priors(priors, n_classes, name="priors"):
    """Return positive shares that sum to one as an array (k,), or say what is wrong with them."""
    try:
        array = np.asarray(priors, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one for each class; got {priors!r}.") from None
    if array.shape != (n_classes,):
        raise ValueError(f"{name} must be {n_classes} numbers, one for each class; got the shape {array.shape}.")
    if not (array > 0).all() or abs(array.sum() - 1) > SUM:
        raise ValueError(f"{name} must be positive and sum to one; they are {array.tolist()}.")
    return array / array.sum()


def corrected(posterior, ratio):
    """Multiply the columns of valid probabilities by numbers, and normalize the rows."""
    changed = posterior * ratio.astype(posterior.dtype, copy=False)
    changed /= changed.sum(axis=1, keepdims=True)
    return changed


def correct_priors(posterior, old, new):
    """Turn a posterior under old class priors into the posterior under new ones.

    Parameters
    ----------
    posterior : Probabilities of the classes, (classes,) or (rows, classes).
    old : Class shares that the posterior was learned from.
    new : Class shares where it is used.

    Examples
    --------
    A test that was tuned on as many sick as healthy people, used where 1 in 100 is sick:

    >>> correct_priors([0.1, 0.9], old=[0.5, 0.5], new=[0.99, 0.01])
    array([0.916667, 0.083333])
    """
    posterior, single = checked_posterior(posterior)
    k = posterior.shape[1]
    found = corrected(posterior, checked_priors(new, k, "new") / checked_priors(old, k, "old"))
    return found[0] if single else found


def share_block(posterior, weight):
    """Sum the corrected posteriors of a block, and the logarithms of what normalized them."""
    changed = posterior * weight
    total = changed.sum(axis=1)
    return (changed / total[:, None]).sum(axis=0), float(np.log(total).sum())


def estimate_priors(posterior, old, *, tol=1e-9, max_iter=10_000):
    """Estimate the class priors of unlabeled rows by maximum likelihood.

    Parameters
    ----------
    posterior : Probabilities of the classes of the new rows under the old priors, (rows, classes).
    old : Class shares that the posterior was learned from.
    tol : Stop when no priors can raise the mean log likelihood by more.
    max_iter : Iterations at most; a warning says if they end first.

    Returns
    -------
    priors : (classes,)

    Examples
    --------
    >>> estimate_priors([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]], old=[0.5, 0.5])
    array([0.911, 0.089])
    """
    posterior, _ = checked_posterior(posterior)
    old = checked_priors(old, posterior.shape[1], "old")
    blocks = Blocks.of(posterior)

    def step(new):
        shares, value = blocks.reduce(share_block, new / old)
        after = shares / blocks.n_rows
        # after = new·g entry by entry, hence g, and the gap max g − 1
        gap = float(np.max(after[new > 0] / new[new > 0])) - 1
        return after, value / blocks.n_rows, gap

    # 1e-12: the mean of logarithms that may cancel, in rounding
    return iterate(step, old, max_iter=max_iter, tol=tol, monotone="up", rounding=1e-12, name="prior shares").state
