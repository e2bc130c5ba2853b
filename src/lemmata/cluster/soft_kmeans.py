"""Soft k-means: every row belongs to every center, the nearer the more.

Choose centers C and shares rᵢⱼ ≥ 0, Σⱼ rᵢⱼ = 1, to minimize the free energy of stiffness β,

    F(C, r) = Σᵢ sᵢ (Σⱼ rᵢⱼ ‖xᵢ − cⱼ‖² + (1/β) Σⱼ rᵢⱼ log rᵢⱼ).

For given centers the best shares are rᵢⱼ ∝ exp(−β ‖xᵢ − cⱼ‖²), which leaves F = −(1/β) Σᵢ sᵢ log Σⱼ exp(−β ‖xᵢ − cⱼ‖²); for
given shares the best centers are the means cⱼ = Σᵢ sᵢ rᵢⱼ xᵢ / Σᵢ sᵢ rᵢⱼ. A pass does both, so F never rises. Without the
entropy the best shares would be hard: the sum of squares alone is not what soft k-means minimizes. (Some texts write
exp(−‖x − c‖²/β); their β is 1/β here.) As β → ∞ this is k-means. It is also maximum likelihood, by EM, of equally frequent
Gaussians of covariance I/(2β). While β is below 1/(2λ), λ the largest eigenvalue of the covariance of the rows, all centers
at the mean are a minimum; above, they are a saddle, and centers part one after another as β rises [1].
Certificate: the fixed point of a pass, and that the second derivative of F,

    ∂²F/∂cⱼ∂cₗ = 2 δⱼₗ I Σᵢ sᵢ rᵢⱼ − 4β Σᵢ sᵢ (δⱼₗ rᵢⱼ − rᵢⱼ rᵢₗ) (xᵢ − cⱼ)(xᵢ − cₗ)ᵀ,

has no negative eigenvalue: centers that should part but coincide are refused.

[1] Rose, Gurewitz & Fox, Phys. Rev. Lett. 65 (1990).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster.dissimilarity import NearestCenter, distances
from lemmata.cluster.distinct import merged, spread_out
from lemmata.core.certificate import SABOTAGE, TINY, Certificate, Check, equi, same
from lemmata.core.estimator import as_output
from lemmata.core.kernel import kernel
from lemmata.core.random import generator

TILE = 256  # rows that are worked on side by side
SAMPLE = 1 << 14  # rows among which starting centers are drawn
MOST_PARAMETERS = 1000  # numbers in the centers up to which the certificate affords the second derivative


@kernel
def lay_out(X, start, tile):
    """Copy rows from `start` on into a tile, a line for each column; return how many."""
    width = min(tile.shape[1], len(X) - start)
    for r in range(width):
        for f in range(X.shape[1]):
            tile[f, r] = X[start + r, f]
    return width


@kernel
def share(tile, width, centers, beta, shares, least, total):
    """Find the shares of a tile of rows, their least squared distances, and the sums by which the shares were divided."""
    for r in range(width):
        least[r] = np.inf
        total[r] = 0.0
    for j in range(len(centers)):
        for r in range(width):
            shares[j, r] = 0.0
        for f in range(centers.shape[1]):
            c = centers[j, f]
            for r in range(width):
                shares[j, r] += (tile[f, r] - c) ** 2
        for r in range(width):
            least[r] = min(least[r], shares[j, r])
    for j in range(len(centers)):
        for r in range(width):
            e = np.exp(-beta * (shares[j, r] - least[r]))
            shares[j, r] = e
            total[r] += e
    for j in range(len(centers)):
        for r in range(width):
            shares[j, r] /= total[r]


@kernel
def soft_sums(X, weight, centers, beta, counts, offsets):
    """Add the weights of the centers and the weighted offsets of the rows from them; return the free energy and the inertia."""
    k, d = centers.shape
    tile, shares = np.empty((d, TILE)), np.empty((k, TILE))
    least, total, w, square = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    energy, inertia = 0.0, 0.0
    for start in range(0, len(X), TILE):
        width = lay_out(X, start, tile)
        share(tile, width, centers, beta, shares, least, total)
        for r in range(width):
            w[r] = 1.0 if weight is None else weight[start + r]
        for r in range(width):
            energy += w[r] * (least[r] - np.log(total[r]) / beta)
        for j in range(k):
            count = 0.0
            for r in range(width):
                shares[j, r] *= w[r]
                count += shares[j, r]
                square[r] = 0.0
            counts[j] += count
            for f in range(d):
                c, offset = centers[j, f], 0.0
                for r in range(width):
                    difference = tile[f, r] - c
                    square[r] += difference * difference
                    offset += shares[j, r] * difference
                offsets[j, f] += offset
            for r in range(width):
                inertia += shares[j, r] * square[r]
    return energy, inertia


@kernel
def soft_shares(X, centers, beta, out):
    """Write the shares of every row."""
    k, d = centers.shape
    tile, shares, least, total = np.empty((d, TILE)), np.empty((k, TILE)), np.empty(TILE), np.empty(TILE)
    for start in range(0, len(X), TILE):
        width = lay_out(X, start, tile)
        share(tile, width, centers, beta, shares, least, total)
        for r in range(width):
            for j in range(k):
                out[start + r, j] = shares[j, r]


def soft_block(X, weight, centers, beta):
    """Free energy, inertia, weights of the centers and weighted offsets from them, of a block."""
    counts, offsets = np.zeros(len(centers)), np.zeros(centers.shape)
    energy, inertia = soft_sums(X, weight, centers, beta, counts, offsets)
    return float(energy), float(inertia), counts, offsets


def shares_block(X, weight, centers, beta):
    """Shares of each row."""
    out = np.empty((len(X), len(centers)))
    soft_shares(X, centers, beta, out)
    return out


def label_block(X, weight, centers, beta):
    """Center of which each row has the largest share."""
    return shares_block(X, weight, centers, beta).argmax(axis=1).astype(np.int32)


def moments_block(X, weight, origin):
    """Sum of weights, of offsets from the origin, and of their squares, column by column."""
    A = X - origin
    w = np.ones(len(A)) if weight is None else weight
    return float(w.sum()), w @ A, w @ (A * A)


def curvature_block(X, weight, centers, beta):
    """Second derivative of the free energy, as a matrix over all entries of the centers."""
    k, d = centers.shape
    w = np.ones(len(X)) if weight is None else weight
    shares, out = shares_block(X, weight, centers, beta), np.zeros((k * d, k * d))
    pulls = np.empty((len(X), k * d))
    for j in range(k):
        own, offsets = slice(j * d, (j + 1) * d), X - centers[j]
        mass = w * shares[:, j]
        pulls[:, own] = shares[:, j, None] * offsets
        out[own, own] = 2.0 * mass.sum() * np.eye(d) - 4.0 * beta * (offsets.T @ (mass[:, None] * offsets))
    return out + 4.0 * beta * (pulls.T @ (w[:, None] * pulls))


def spread_of(blocks):
    """Total weight, and the mean variance of the columns (0 where it is no more than rounding)."""
    origin = np.asarray(blocks.first()[0], dtype=float).mean(axis=0)
    total, offsets, squares = blocks.reduce(moments_block, origin)
    variance = float(np.mean(squares / total - (offsets / total) ** 2))
    rounding = 4 * np.finfo(float).eps * np.abs(origin).max(initial=0.0)
    return total, variance if variance > rounding**2 else 0.0


class SoftKMeans(NearestCenter):
    """Cluster rows around `n_clusters` means, each row sharing itself among them.

    Parameters
    ----------
    n_clusters : Number of centers.
    beta : Stiffness β of the shares ∝ exp(−β × squared distance), or "scale": n_clusters / (2 × mean variance of the columns),
        as if every cluster had its share of the variance.
    init : "k-means++", or an array (n_clusters, n_features).
    max_iter : Passes at most.
    tol : Stop when no center moves by more than tol × the root of the mean variance of the columns.
    verbose : 1 shows a progress bar.
    random_state : Seed of the start.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
    beta_ : The stiffness that was used.
    labels_ : (n_samples,), center of which each row has the largest share; ties go to the first.
    free_energy_ : What is minimized: the inertia minus the entropies of the shares over β.
    inertia_ : Weighted sum of squared distances to the centers, each times its share.
    n_iter_ : Passes.
    converged_ : Whether the last pass moved no center by more than tol.
    trace_ : Free energy before each move.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = SoftKMeans(2, beta=0.1, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().round(3).tolist())
    [0.504, 9.496]
    >>> model.predict_proba([[5.0]])
    array([[0.5, 0.5]])
    >>> print(model.certify(X))
    SoftKMeans(beta=0.1, n_clusters=2, random_state=0): certificate holds (local)
      check        value     limit  kind   claim
      fixed point  ... ≤ 1e-03  local  every center is the mean of the rows, by their shares
      curvature    0.0e+00 ≤ 1e-06  local  the free energy bends down in no direction
      free energy  ... ≤ 1e-06  proof  inertia minus the entropies of the shares over beta
      inertia      ... ≤ 1e-06  proof  squared distances to the centers, by shares
      beta         ... ≤ 1e-06  proof  stiffness that was asked for
      labels       0.0e+00 ≤ 1e-09  proof  every row has the label of its largest share
    """

    metric = "euclidean"  # of `transform`

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
        "init": [StrOptions({"k-means++"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        beta="scale",
        init="k-means++",
        max_iter=10_000,
        tol=1e-10,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.beta = beta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_clusters:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_clusters={self.n_clusters}.")
        total, variance = spread_of(blocks)
        beta, unit = self._stiffness(variance), np.sqrt(variance) or 1.0

        def step(centers):
            energy, _, counts, offsets = blocks.reduce(soft_block, centers, beta)
            moves = offsets / np.maximum(counts, TINY)[:, None]
            return centers + moves, energy, float(np.abs(moves).max() / unit)

        def fitted(centers):
            return {"cluster_centers_": as_output(centers, blocks.dtype), "beta_": beta}

        start = self._start(blocks)
        rounding = 1e-12 * total * (variance * blocks.n_columns + np.log(self.n_clusters) / beta)
        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(
                step, start, tol=self.tol, monotone="down", rounding=rounding, name="soft k-means", fitted=fitted
            )
            self.cluster_centers_, self.beta_ = fitted(run.state).values()
            self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
            self.free_energy_, self.inertia_ = blocks.reduce(soft_block, self._doubles(), beta)[:2]
            whole = blocks if blocks.complete else self._blocks(X, reset=False, order="C")
            self.labels_ = whole.map(label_block, self._doubles(), beta)
        return self

    def _stiffness(self, variance):
        """Give beta as a number; without any variance, 1 will do."""
        if isinstance(self.beta, str):
            return self.n_clusters / (2.0 * variance) if variance else 1.0
        return float(self.beta)

    def _start(self, blocks):
        """Choose the starting centers; where there are too few distinct rows, some of them twice."""
        if not isinstance(self.init, str):
            centers = np.array(self.init, dtype=float)
            if centers.shape != (self.n_clusters, blocks.n_columns) or not np.isfinite(centers).all():
                raise ValueError(f"init must hold {self.n_clusters} rows of {blocks.n_columns} finite numbers.")
            return centers
        rng = generator(self.random_state)
        numbers = np.arange(blocks.n_rows)
        if blocks.n_rows > SAMPLE:
            numbers = np.sort(rng.choice(blocks.n_rows, SAMPLE, replace=False))
        rows, weight = blocks.take(numbers)
        first, weight = merged(rows, np.ones(len(rows)) if weight is None else weight)
        rows = rows[first].astype(float)

        def lines(drawn):
            return distances(rows[drawn], rows, "sqeuclidean")

        chosen = spread_out(lines, weight, min(self.n_clusters, len(rows)), rng)
        return rows[np.resize(chosen, self.n_clusters)]

    def _doubles(self):
        return self.cluster_centers_.astype(float)

    def predict(self, X):
        """Give each row the number of the center of which it has the largest share."""
        return self._fitted_blocks(X).map(label_block, self._doubles(), float(self.beta_))

    def predict_proba(self, X):
        """Give the shares of each row."""
        blocks = self._fitted_blocks(X)
        return as_output(blocks.map(shares_block, self._doubles(), float(self.beta_)), blocks.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give minus the free energy of rows X."""
        return -self._fitted_blocks(X, sample_weight).reduce(soft_block, self._doubles(), float(self.beta_))[0]

    def certify(self, X, y=None, sample_weight=None):
        """Check the fixed point and the curvature: a minimum of the free energy among nearby centers."""
        blocks = self._fitted_blocks(X, sample_weight)
        total, variance = spread_of(blocks)
        centers, beta = self._doubles(), float(self.beta_)
        energy, inertia = blocks.reduce(soft_block, centers, beta)[:2]
        floor = np.finfo(self.cluster_centers_.dtype).eps * (inertia + total * np.log(len(centers)) / beta)
        unit = np.sqrt(variance) or max(np.finfo(float).eps * float(np.abs(centers).max()), TINY)

        def pull(c):
            return blocks.reduce(soft_block, c, beta)[3]

        def move(c, rng):
            return c + SABOTAGE * unit * rng.standard_normal(c.shape)

        checks = [equi(pull, centers, "fixed point", "every center is the mean of the rows, by their shares", move=move)]
        if centers.size <= MOST_PARAMETERS:
            values = np.linalg.eigvalsh(blocks.reduce(curvature_block, centers, beta))
            bend = max(-values[0], 0.0) / max(values[-1], TINY)
            checks.append(Check("curvature", bend, 1e-6, "local", "the free energy bends down in no direction"))
        return Certificate(
            *checks,
            same(self.free_energy_, energy, "free energy", "inertia minus the entropies of the shares over beta", floor=floor),
            same(self.inertia_, inertia, "inertia", "squared distances to the centers, by shares", floor=floor),
            same(beta, self._stiffness(variance), "beta", "stiffness that was asked for"),
            Check("labels", self._wrong_labels(X), 1e-9, "proof", "every row has the label of its largest share"),
            subject=repr(self),
        )

    def _wrong_labels(self, X):
        """Say by how much the largest share of a row exceeds that of its label, at most."""
        shares, labels = np.asarray(self.predict_proba(X), dtype=float), np.asarray(self.labels_)
        if len(shares) != len(labels) or labels.max() >= shares.shape[1] or labels.min() < 0:
            return np.inf
        return float((shares.max(axis=1) - shares[np.arange(len(labels)), labels]).max())
