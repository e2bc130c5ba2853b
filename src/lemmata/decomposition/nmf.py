"""Non-negative matrix factorization: a table as sums of parts, X ≈ WH with W ≥ 0 and H ≥ 0.

Minimize, over both factors,

    F(W, H) = Σᵢⱼ sᵢ mᵢⱼ ℓ(xᵢⱼ, (WH)ᵢⱼ) + α_W d (ρ Σ sW + ½(1−ρ) Σ sW²) + α_H S (ρ ΣH + ½(1−ρ) ΣH²)

with ℓ(x, y) = ½(x − y)² ("squared") or x log(x/y) − x + y ("kl", counts that are Poisson with the means WH). Rows have
weights sᵢ, which sum to S, entries have weights mᵢⱼ: 0 where an entry is missing. Given one factor the loss is convex in the
other; together it is not, and the least loss of all is hard to find [1]. Multiplicative updates [2], solver "mu",

    H ← H ∘ (WᵀX) / (WᵀWH),   W ← W ∘ (XHᵀ) / (WHHᵀ)         and for "kl", with V = X/(WH),
    Hᵣⱼ ← Hᵣⱼ Σᵢ WᵢᵣVᵢⱼ / Σᵢ Wᵢᵣ,   Wᵢᵣ ← Wᵢᵣ Σⱼ HᵣⱼVᵢⱼ / Σⱼ Hᵣⱼ,

never raise it but are slow, and what is zero stays zero. Solver "cd" descends along coordinates (`nmf_rows`), or by Newton's
method (`nmf_kl`), and looks ahead (`nmf_descent`). Certificate (`nmf_certificate`): H ≥ 0; the best W for this H, found anew
and proved to be it; H is stationary given W, also where it is zero; the error is what is stored; and how far at most it is
above that of the best factors of any sign (Eckart & Young).

[1] Vavasis, SIAM Journal on Optimization 20 (2009). [2] Lee & Seung, Nature 401 (1999); NIPS (2000).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import NO_WEIGHTS, Estimator, Iterative, as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.decomposition.cuts import even
from lemmata.decomposition.nmf_certificate import certificate
from lemmata.decomposition.nmf_descent import Descent, first_state
from lemmata.decomposition.nmf_entries import Layout, Table, look_block, masked
from lemmata.decomposition.nmf_kl import Divergence
from lemmata.decomposition.nmf_squared import Squared
from lemmata.decomposition.nmf_start import start

STARTS = ("nndsvd", "nndsvda", "nndsvdar", "random")
QUICK = 1e6  # entries × n_components up to which calling a pass costs more than the pass
SMALL = 3e7  # entries × n_components² up to which Newton's method for "kl" takes a blink for a pass, and far fewer of them


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Iterative, Estimator):
    """Write the rows of a non-negative table as sums of a few non-negative parts.

    Parameters
    ----------
    n_components : Number of parts; "auto" takes that of `init`, if it is given, else the number of columns.
    loss : "squared", or "kl" for counts: the generalized Kullback–Leibler divergence.
    solver : "cd", coordinate descent with momentum (for "kl" Newton's method, or multiplicative updates where a table is
        large, both with momentum), or "mu", plain multiplicative updates.
    init : "nndsvd", "nndsvda", "nndsvdar", "random", or an array H (n_components, n_features), or a tuple (W, H). None is
        "nndsvd" where zeros can be left again (squared loss, "cd"), else "nndsvda".
    tol : Stop when an update moves no factor by more than this share of its size, whatever the units of the parts.
    max_iter : Passes over the rows at most.
    alpha_W, alpha_H : Factors of the penalties, times the number of columns and of rows; "same" is that of W.
    l1_ratio : Share of the penalty that is on the sum of the entries; the rest is on half the sum of their squares.
    random_state : Seed of random starts. The same seed gives the same bits for any number of threads, from memory, Parquet
        or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    components_ : (n_components, n_features), the parts H.
    n_components_ : Number of parts.
    reconstruction_err_ : √(2 × the loss without penalties) at the best W for these parts: the length of X − WH.
    n_iter_ : Passes over the rows.
    converged_ : Whether they met tol.
    trace_ : Loss, with penalties, at each pass.

    Examples
    --------
    >>> X = [[2.0, 2.0, 0.0], [0.0, 1.0, 1.0], [4.0, 4.0, 0.0], [2.0, 3.0, 1.0]]
    >>> model = NMF(2, random_state=0).fit(X)
    >>> W = model.transform(X)
    >>> (W @ model.components_).round(4)
    array([[2., 2., 0.],
           [0., 1., 1.],
           [4., 4., 0.],
           [2., 3., 1.]])
    >>> print(model.certify(X))
    NMF(n_components=2, random_state=0): certificate holds (local)
      check         value     limit  kind   claim
      non-negative  0.0e+00 ≤ 0e+00  proof  no entry of the parts is negative
      W             ...
      H             ...
      error         ...
      excess        ...
    """

    _parameter_constraints = {
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"squared", "kl"})],
        "solver": [StrOptions({"cd", "mu"})],
        "init": [StrOptions(set(STARTS)), "array-like", tuple, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [StrOptions({"same"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        loss="squared",
        solver="cd",
        init=None,
        tol=1e-5,
        max_iter=2000,
        alpha_W=0.0,
        alpha_H="same",
        l1_ratio=0.0,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, mask=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks.

        Parameters
        ----------
        mask : Weights of the entries, an array or sparse matrix of the shape of X: 0 or False where an entry is not seen, 1
            where it is, other numbers where it counts more or less. Entries that are NaN are not seen either.
        """
        table = self._table(X, mask, sample_weight, reset=True)
        if self.checkpoint is not None and isinstance(self.init, tuple):
            raise ValueError("A fit with a checkpoint starts from a name or from H alone, not from init=(W, H).")
        table.refuse_empty_columns()
        blocks, loss = table.blocks, self._loss(table)
        with serial_blas(), self._fitting(blocks, X=X, y=y) as fitting:
            H, W = self._start(table)
            loss.n_rounds = self._rounds(table, H.shape[1])
            total = blocks.reduce(loss.total_block)
            descent = Descent(blocks, loss, total, self.checkpoint is not None)
            run = fitting.iterate(
                descent.step,
                first_state(H, W, self.solver == "cd"),
                tol=self.tol,
                monotone="down",
                rounding=1e-13 * total,  # the loss is a difference of sums of this size
                name="NMF",
                fitted=lambda state: {"components_": as_output(state.H.T * table.half, table.dtype)},
            )
            self.components_ = as_output(np.ascontiguousarray(run.state.H.T) * table.half, table.dtype)
            self.n_iter_, self.converged_ = run.n_iter, run.converged
            self.trace_ = run.trace * table.unit**loss.power
            error, _ = blocks.sweep(loss.error_block, descent.by_blocks(run.state.W), self._parts(table))
            self.reconstruction_err_ = table.length(error, loss)
        return self

    def fit_transform(self, X, y=None, sample_weight=None, mask=None):
        """Fit to rows X and give W."""
        return self.fit(X, y, sample_weight, mask).transform(X, mask)

    def transform(self, X, mask=None):
        """Give the best W of rows X: how much of each part makes up each row; a row of which nothing is seen has zeros."""
        check_is_fitted(self)
        table = self._table(X, mask, NO_WEIGHTS, reset=False)
        with serial_blas():
            W = table.blocks.map(self._loss(table).solve_block, self._parts(table))
        return as_output(W * table.half, table.dtype)

    def inverse_transform(self, X):
        """Put rows together from their parts: X @ components_."""
        check_is_fitted(self)
        return X @ self.components_

    def certify(self, X, y=None, sample_weight=None, mask=None):
        """Prove the best W for the parts, that they are stationary given it, and how far from the best the loss is at most."""
        check_is_fitted(self)
        table = self._table(X, mask, sample_weight, reset=False)
        loss, H = self._loss(table), self._parts(table)
        with serial_blas():
            return certificate(table, loss, H, self.reconstruction_err_, repr(self))

    @property
    def n_components_(self):
        """Number of parts."""
        check_is_fitted(self)
        return len(self.components_)

    @property
    def _n_features_out(self):
        return len(self.components_)

    def _table(self, X, mask, sample_weight, reset):
        """Validate a table and its mask, and find what fits need to know of it."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=reset, order="C")
        dtype, d = blocks.dtype, blocks.n_columns
        if mask is not None:
            blocks = masked(blocks, mask)
        blocks = even(blocks, d if self.n_components == "auto" else self.n_components)
        largest, least, holes, weight, stored = blocks.reduce(look_block)
        if least.value > 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: all entries must be at least 0.")
        layout = Layout(d, mask is not None, mask is not None or holes.value > 0)
        return Table(blocks, layout, largest.value, weight, stored, dtype)

    def _loss(self, table):
        """Give the loss of a table, its penalties in the table's units."""
        cls = Squared if self.loss == "squared" else Divergence
        alpha_H = self.alpha_W if isinstance(self.alpha_H, str) else self.alpha_H
        of_W, of_H = self.alpha_W * table.layout.n_columns, alpha_H * table.weight
        size = table.unit**cls.power
        linear, quadratic = self.l1_ratio * table.half / size, (1 - self.l1_ratio) * table.unit / size
        penalties = (of_W * linear, of_W * quadratic, of_H * linear, of_H * quadratic)
        return cls(table.layout, 1 / table.unit, penalties)

    def _rounds(self, table, k):
        """Choose the rounds in which a factor is improved before the other one's turn; 0 stands for multiplicative updates.

        Rounds of a squared loss are worth it while they cost no more than what went before them: a product with the rows.
        """
        if self.loss == "kl":
            return 2 if self.solver == "cd" and table.stored * k**2 <= SMALL else 0
        balanced = 8 if table.stored * k <= QUICK else int(np.clip(1 + table.stored / table.weight / k, 2, 8))
        return balanced if self.solver == "cd" else 0

    def _parts(self, table):
        """Give the parts with a row for each column, in the table's units."""
        if self.components_.ndim != 2 or self.components_.shape[1] != self.n_features_in_:
            raise ValueError(f"components_ has the shape {self.components_.shape}, which is not that of a fit.")
        return np.ascontiguousarray(self.components_.T.astype(float) / table.half)

    def _start(self, table):
        """Give H, with a row for each column, and W by blocks or None."""
        given = self.init if isinstance(self.init, tuple) else (None, self.init)
        if self.init is None or isinstance(self.init, str):
            kind = self.init or ("nndsvd" if (self.loss, self.solver) == ("squared", "cd") else "nndsvda")
            k = table.layout.n_columns if self.n_components == "auto" else self.n_components
            return start(kind, table, k, generator(self.random_state)), None
        if len(given) != 2:
            raise ValueError(f"init must be a name, an array H or a tuple (W, H), got a tuple of {len(given)}.")
        k = np.shape(given[1])[0] if self.n_components == "auto" else self.n_components
        H = given_factor(given[1], "H", (k, table.layout.n_columns)).T / table.half
        if given[0] is None:
            return np.ascontiguousarray(H), None
        blocks = table.blocks
        if blocks.home != "memory":
            raise ValueError("init=(W, H) needs the rows in memory; give H alone for a stored table.")
        W = given_factor(given[0], "W", (blocks.n_table, k))[blocks.numbers()] / table.half
        cuts = range(0, blocks.n_rows, blocks.block_rows)
        by_blocks = {i: np.ascontiguousarray(W[first : first + blocks.block_rows]) for i, first in enumerate(cuts)}
        return np.ascontiguousarray(H), by_blocks


def given_factor(factor, name, shape):
    """Check a factor that a fit is to start from."""
    factor = np.array(factor, dtype=float)
    if factor.shape != shape:
        raise ValueError(f"The start {name} must have the shape {shape}, got {factor.shape}.")
    if not (np.isfinite(factor).all() and (factor >= 0).all()):
        raise ValueError(f"The start {name} must be finite and not negative.")
    return factor
