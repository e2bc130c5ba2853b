"""Information of samples: entropy and mutual information estimated from labels and from points.

Labels. Replace probabilities by frequencies. The plug-in entropy is too small, on average by b = (K − 1)/2n to first order for
K labels; Miller and Madow add that back, with the labels seen for K. By the delta method its variance is that of the mean of
−log p(x). This vanishes where the labels are uniform, and there 2n (log K − H) has a χ² distribution with K − 1 degrees of
freedom and H the variance b/n, which is added: the interval is rather too long there. Mutual information is
H(X) + H(Y) − H(X, Y), its terms log p(x, y)/(p(x) p(y)), its b the sum of three; where it vanishes, 2n I has a χ² distribution
with 2n |b| degrees of freedom.

Points. Around xᵢ the ball that reaches the k-th of the n − 1 other points, of radius rᵢ and volume c rᵢᵈ, holds a share of the
mass whose logarithm has the expectation ψ(k) − ψ(n). If the density is constant in it [1],

    h ≈ ψ(n) − ψ(k) + log c + d · mean log rᵢ.

For mutual information three such estimates would have three biases. With rᵢ from the joint space, in the maximum norm, and a_i,
b_i the numbers of other points nearer than rᵢ in x and in y alone, most of the bias cancels [2]:

    I ≈ ψ(k) + ψ(n) − mean (ψ(a_i + 1) + ψ(b_i + 1)).

Both are means, and carry the standard error of a mean. Their bias grows with the dimension, and is not in it.

[1] Kozachenko & Leonenko, Probl. Inf. Transm. 23 (1987). [2] Kraskov, Stögbauer & Grassberger, Phys. Rev. E 69 (2004).
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import gammaln, ndtri, psi

from lemmata.probability.logarithms import units


@dataclass(frozen=True)
class Estimate:
    """An estimated number and its standard error; `float` gives the number.

    Examples
    --------
    >>> Estimate(1.0, 0.1).interval(0.95)
    (0.804, 1.196)
    """

    value: float
    error: float

    def __float__(self):
        return self.value

    def interval(self, level=0.95):
        """Return the ends of the interval that a normal estimator would hold the truth in with this probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level}.")
        half = float(ndtri((1 + level) / 2)) * self.error
        return self.value - half, self.value + half


def entropy_of_labels(labels, corrected=False, base=None):
    """Estimate the entropy of the distribution that labels were drawn from.

    Parameters
    ----------
    labels : Anything NumPy can sort, (n,).
    corrected : Whether to add Miller and Madow's (K − 1)/2n for the K labels seen.
    base : Of the logarithm; nats if None.

    Returns
    -------
    estimate : `Estimate`.

    Examples
    --------
    >>> estimate = entropy_of_labels(list("aaabbc"))
    >>> estimate.value, estimate.error
    (1.0114, 0.2314)
    >>> entropy_of_labels(list("aaabbc"), corrected=True).value
    1.1781
    """
    _, counts = np.unique(_column(labels), return_counts=True)
    n = counts.sum()
    return _averaged(-np.log(counts / n), counts, (len(counts) - 1) / (2 * n), corrected, base)


def mutual_information_of_labels(x, y, corrected=False, base=None):
    """Estimate the mutual information of two labels of the same rows.

    Parameters
    ----------
    x, y : Labels, (n,).
    corrected : Whether to correct all three entropies as Miller and Madow do; the result may then be negative.
    base : Of the logarithm; nats if None.

    Returns
    -------
    estimate : `Estimate`.

    Examples
    --------
    >>> mutual_information_of_labels([0, 0, 1, 1], ["a", "a", "b", "b"], base=2).value
    1.0
    """
    x, y = _column(x), _column(y)
    if len(x) != len(y):
        raise ValueError(f"x and y must have as many labels; got {len(x)} and {len(y)}.")
    (_, x, x_counts), (_, y, y_counts) = (np.unique(z, return_inverse=True, return_counts=True) for z in (x, y))
    cells, counts = np.unique(x * len(y_counts) + y, return_counts=True)
    i, j = np.divmod(cells, len(y_counts))
    n = counts.sum()
    information = np.log(counts / x_counts[i]) - np.log(y_counts[j] / n)
    excess = (len(x_counts) - 1) + (len(y_counts) - 1) - (len(counts) - 1)
    return _averaged(information, counts, excess / (2 * n), corrected, base)


def differential_entropy_of_points(X, k=3, base=None):
    """Estimate the differential entropy of the density that points were drawn from, by distances to the k-th neighbor.

    Parameters
    ----------
    X : Points, (n, d) or (n,), all different.
    k : Number of neighbors: a few; more make the variance smaller and the bias larger.
    base : Of the logarithm; nats if None.

    Returns
    -------
    estimate : `Estimate`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=4000)
    >>> abs(differential_entropy_of_points(points).value - 1.418939) < 0.05
    True
    """
    X = _points(X, k)
    n, d = X.shape
    radii = _radii(X, k, norm=2)
    log_volume = d / 2 * np.log(np.pi) - gammaln(1 + d / 2)
    return _averaged(psi(n) - psi(k) + log_volume + d * np.log(radii), np.ones(n), 0.0, False, base)


def mutual_information_of_points(X, Y, k=3, base=None):
    """Estimate the mutual information of two vectors of the same rows, by distances to the k-th neighbor.

    Columns are scaled to the standard deviation 1, which leaves the mutual information as it is. The result may be negative.

    Parameters
    ----------
    X, Y : Points, (n, d) or (n,), with continuous distributions.
    k : Number of neighbors: a few; more make the variance smaller and the bias larger.
    base : Of the logarithm; nats if None.

    Returns
    -------
    estimate : `Estimate`.

    Examples
    --------
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    >>> abs(mutual_information_of_points(x, 0.6 * x + 0.8 * noise).value - 0.223144) < 0.05
    True
    """
    n = len(X)
    if n != len(Y):
        raise ValueError(f"X and Y must have as many rows; got {n} and {len(Y)}.")
    X, Y = _points(X, k), _points(Y, k)
    X, Y = _scaled(X), _scaled(Y)
    nearer = np.nextafter(_radii(np.hstack([X, Y]), k, norm=np.inf), 0.0)  # strictly nearer than the k-th neighbor
    within = [cKDTree(Z).query_ball_point(Z, nearer, p=np.inf, return_length=True) for Z in (X, Y)]  # counts the point itself
    return _averaged(psi(k) + psi(n) - psi(within[0]) - psi(within[1]), np.ones(n), 0.0, False, base)


def _averaged(terms, counts, bias, corrected, base):
    """Return the mean of terms that occur so often, its bias removed if asked, with its standard error to second order."""
    n, unit = counts.sum(), units(base)
    mean = float(counts @ terms / n)
    error = np.sqrt(counts @ (terms - mean) ** 2 / n**2 + abs(bias) / n)
    return Estimate((mean + corrected * float(bias)) / unit, float(error) / unit)


def _column(labels):
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"Labels must be a vector with at least one entry; got the shape {labels.shape}.")
    return labels


def _points(X, k):
    X = np.asarray(X, dtype=float)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or X.shape[1] == 0 or not np.isfinite(X).all():
        raise ValueError(f"Points must be a matrix of finite numbers with one row for each; got the shape {X.shape}.")
    if not 1 <= k < len(X):
        raise ValueError(f"k must be at least 1 and less than the number of points; got k={k} and {len(X)} points.")
    return X


def _scaled(X):
    spread = X.std(axis=0)
    if (spread == 0).any():
        raise ValueError(f"Column {int(np.argmin(spread))} is constant; it has no density, and tells nothing: leave it out.")
    return (X - X.mean(axis=0)) / spread


def _radii(X, k, norm):
    """Return the distance of each point to its k-th neighbor; refuse repeated points."""
    radii = cKDTree(X).query(X, k=[k + 1], p=norm)[0][:, 0]  # the nearest is the point itself
    if (radii == 0).any():
        raise ValueError(
            f"Row {int(np.argmin(radii))} occurs more than {k} times, which never happens with a density; "
            "take a larger k, or the functions for labels."
        )
    return radii
