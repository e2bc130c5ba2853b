"""Five shapes that the covariances of classes may have, a floor under them, and how to pull them towards something simpler.

    full       Σₖ for each class            (k, d, d)   = Sₖ/nₖ
    tied       one Σ for all classes        (d, d)      = Σₖ Sₖ/n
    diag       variances for each class     (k, d)      = the diagonal of Sₖ/nₖ
    tied-diag  variances for all classes    (d,)        = that of Σₖ Sₖ/n
    spherical  a variance for each class    (k,)        = the mean of that of Sₖ/nₖ

with Sₖ the scatter of class k about its mean and nₖ its weight: maximum likelihood, which divides by n and not by n − 1. What
is seen counts where entries are missing and columns are independent; where they are not, see `missing_classes`.

The floor is a share ε of the variances D of the columns within the classes: Σ ⪰ εD. Maximum likelihood under it raises the
eigenvalues of D^(-½) Σ D^(-½) below ε to ε and leaves the others alone [1]; so a covariance that is not singular is the plain
one to the last bit, and one that is has an inverse. (EM, where entries are missing, adds the floor: see `missing_classes`.)

Shrinkage by a number α gives (1 − α)Σ + α (tr Σ/d) I. "auto" pulls the correlations of each class towards 0, by the share that
makes the expected squared error least [2], and leaves variances as they are.

[1] With S = VΛVᵀ, −log|Σ| − tr Σ⁻¹S is largest for Σ with the same axes (von Neumann's trace inequality), axis by axis.
[2] Ledoit & Wolf, J. Multivar. Anal. 88 (2004), in units of the standard deviations of the class.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.mixture.gaussian import as_matrices

STRUCTURES = ("full", "tied", "diag", "tied-diag", "spherical")
DENSE = ("full", "tied")  # structures in which columns depend on each other
CONSTANT = 4 * np.finfo(float).eps  # share of its means by which a column may vary and yet count as constant
ABOVE_THE_FLOOR = 20.0  # times the floor: EM, which adds it, comes to rest at about ten where the likelihood has no maximum
ROUNDED = 100 * np.finfo(float).eps  # times the columns: the least eigenvalue, of 1 on average, that is not rounding


def expanded(covariance, structure, k, d):
    """Give the covariance of each class as a matrix, (k, d, d).

    Examples
    --------
    >>> expanded(np.array([1.0, 2.0]), "tied-diag", 1, 2)
    array([[[1., 0.],
            [0., 2.]]])
    """
    if structure == "tied-diag":
        covariance, structure = np.broadcast_to(covariance, (k, d)), "diag"
    return as_matrices(covariance, structure, k, d)


def shape_of(structure, k, d):
    """Give the shape of the covariances."""
    return {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "tied-diag": (d,), "spherical": (k,)}[structure]


def column_scales(moments):
    """Give the standard deviation of each column within the classes.

    A column that is constant within all classes has that over all of them; a constant one that of the widest, or 1.
    """
    far = CONSTANT * np.abs(moments.mean).max(axis=0)
    within = moments.within_variances
    variances = np.where(np.sqrt(within) > far, within, moments.column_variances)
    variances = np.where(np.sqrt(variances) > far, variances, 0.0)
    widest = variances.max()
    return np.sqrt(np.where(variances > 0, variances, widest if widest > 0 else 1.0))


def maximum_likelihood(moments, structure):
    """Give the covariances that make the rows of all classes most likely."""

    def per(scatter, weight):
        return scatter / np.where(weight > 0, weight, 1.0)

    if structure == "full":
        return per(moments.scatter, moments.weight[:, None, None])
    if structure == "tied":
        return moments.scatter.sum(axis=0) / moments.weight.sum()
    if structure == "diag":
        return per(moments.scatter, moments.seen)
    if structure == "tied-diag":
        return per(moments.scatter.sum(axis=0), moments.seen.sum(axis=0))
    return per(moments.scatter.sum(axis=1), moments.seen.sum(axis=1))


def raised(covariance, structure, floor, scales):
    """Raise to the floor what lies below it, in units of the scales (d,) of the columns.

    Examples
    --------
    >>> raised(np.array([[1.0, 1.0], [1.0, 1.0]]), "tied", 0.1, np.ones(2))
    array([[1.05, 0.95],
           [0.95, 1.05]])
    """
    if structure not in DENSE:
        return np.maximum(covariance, floor * (np.mean(scales**2) if structure == "spherical" else scales**2))
    units, d = np.outer(scales, scales), len(scales)
    matrices = (covariance / units).reshape(-1, d, d)
    if floor == 0 or _above(matrices, floor):
        return covariance
    values, vectors = np.linalg.eigh(matrices)
    found = (vectors * np.maximum(values, floor)[:, None]) @ np.swapaxes(vectors, 1, 2)
    found = (found + np.swapaxes(found, 1, 2)) / 2
    low = (values[:, 0] < floor)[:, None, None]
    return np.where(low, found * units, covariance.reshape(matrices.shape)).reshape(covariance.shape)


def _above(matrices, floor):
    """Tell whether all eigenvalues lie above the floor: what is left without it has a Cholesky factor."""
    try:
        np.linalg.cholesky(matrices - floor * np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True


def shrunk(covariance, structure, alpha):
    """Pull covariances towards the mean of their variances, by the share alpha.

    Examples
    --------
    >>> shrunk(np.array([[1.0, 1.0], [1.0, 3.0]]), "tied", 0.5)
    array([[1.5, 0.5],
           [0.5, 2.5]])
    """
    if structure == "spherical":
        return covariance
    if structure not in DENSE:
        return (1.0 - alpha) * covariance + alpha * covariance.mean(axis=-1, keepdims=True)
    d = covariance.shape[-1]
    mean = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / d
    return (1.0 - alpha) * covariance + alpha * mean * np.eye(d)


def fourth_block(X, y, weight, mean, scale):
    """Sum ‖z‖⁴ of each class, with z the offset of a row from the mean of its class in units of that."""
    Z = (X - mean[y]) / scale[y]
    squares = np.einsum("ij,ij->i", Z, Z) ** 2
    return np.bincount(y, squares if weight is None else weight * squares, minlength=len(mean))


def best_shares(blocks, moments):
    """Give the share of each class by which Ledoit and Wolf shrink its correlations."""
    variances = moments.diagonal / moments.weight[:, None]
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    fourth = blocks.reduce(fourth_block, moments.mean, scale)
    correlations = moments.scatter / moments.weight[:, None, None] / (scale[:, :, None] * scale[:, None, :])
    squares, trace = (correlations**2).sum(axis=(1, 2)), np.trace(correlations, axis1=1, axis2=2)
    varying = np.maximum((variances > 0).sum(axis=1), 1)
    spread = squares - trace**2 / varying  # ‖R − I‖² over the columns that vary
    noise = (fourth / moments.weight - squares) / moments.weight
    return np.divide(np.minimum(noise, spread), spread, out=np.zeros(len(spread)), where=spread > 0).clip(0.0, 1.0)


def with_weaker_correlations(moments, shares):
    """Shrink the scatter of each class off its diagonal by its share."""
    keep = np.where(np.eye(moments.mean.shape[1], dtype=bool), 1.0, 1.0 - shares[:, None, None])
    return type(moments)(moments.weight, moments.seen, moments.mean, moments.scatter * keep)


def warn_of_the_floor(covariance, structure, scales, floor, classes, counts):
    """Warn if in some direction the floor is all there is of a covariance; raise if there is no floor either."""
    if structure not in DENSE:
        if not (covariance > 0).all():
            raise ValueError("Some column does not vary within a class, and there is no floor: set var_smoothing above 0.")
        return
    d, least_allowed = len(scales), max(1.01 * floor, len(scales) * ROUNDED)  # 1 % for what rounding makes of the floor
    matrices = (covariance / np.outer(scales, scales)).reshape(-1, d, d)
    weights = counts if structure == "full" else counts.sum(keepdims=True)
    least = np.where(weights > 0, np.linalg.eigvalsh(matrices)[:, 0], np.inf)  # a class may have its rows still to come
    narrow = np.flatnonzero(least <= least_allowed)
    if not len(narrow):
        return
    c = narrow[0]
    constant = np.flatnonzero(np.diagonal(matrices[c]) <= least_allowed)
    if weights[c] <= d:
        why = f"a weight of {weights[c]:g} in {d} columns"
    else:
        why = f"column {constant[0]} does not vary" if len(constant) else "some columns follow from others, as far as rows show"
    whose = f"class {classes[c]!s}" if structure == "full" else "the classes"
    what = f"The covariance of {whose} is singular ({why})"
    if least.min() <= d * np.finfo(float).eps:
        raise ValueError(f"{what}: set shrinkage or var_smoothing above 0, or leave columns out.")
    advice = "Set shrinkage, take a simpler covariance, or leave columns out."
    message = f"{what}: the floor var_smoothing decides there. {advice}"
    warnings.warn(message, ConvergenceWarning, stacklevel=5)  # past scikit-learn's wrapper of fit
