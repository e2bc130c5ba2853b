"""Gaussian process classification: latent functions with a Gaussian process prior, and Laplace's approximation of them.

Two classes have one latent function and the logistic link; more have one each, and the softmax: one model of all classes, not
one against the rest. Given rows, the posterior of the latent functions is approximated by the normal law at its mode, see
`laplace`; the probabilities of a row are averages of the link over it, which draws them towards each other where the rows say
little. Hyperparameters are those of the largest approximate evidence nearby. A weight is repetition, and equal rows are one.
Certificate: the mode is the only point where α = t − sπ (the log posterior is concave), the triangles are those of the
curvature there, the evidence comes again from a determinant of all latent values at once, and its slopes vanish, the mode
following. It says nothing of how normal the posterior is.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), chapter 3.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.estimator import Classifier, as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.gaussian_process import laplace
from lemmata.gaussian_process.certificate import stationary
from lemmata.gaussian_process.distinct import counted, rows_block, tells_apart
from lemmata.gaussian_process.factor import back_solve, half_solve
from lemmata.gaussian_process.mode_certificate import mode_checks
from lemmata.gaussian_process.prior import Prior, default_kernel
from lemmata.gaussian_process.search import EvidenceSearch, plain_block
from lemmata.kernels import Kernel
from lemmata.linear_model.laplace import averaged

VARIANCE = 4.0  # of the latent functions where the search begins: odds of 7 to 1 are usual
AMPLITUDES = (1e-3, 6.25)  # of the default kernel, in these units: wider laws are what Laplace's approximation fails for
POINTS = 256  # of the softmax's average, and as many mirrored: probabilities to about 1e-3
CHUNK = 256  # rows that meet all training rows at a time


def as_counts(counts):
    """Return the counts of the classes as `laplace` has them: those of the latent functions, then the totals."""
    own = counts.T[1:] if counts.shape[1] == 2 else counts.T
    return np.vstack([own, counts.sum(axis=1)])


def softmax_average(mean, covariance):
    """Return the average of the softmax over normal latent values (rows, classes), by fixed points that fill their space.

    Examples
    --------
    >>> softmax_average(np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3, 3))).round(6)
    array([[0.576117, 0.211942, 0.211942]])
    """
    a = mean.shape[1]
    points = ndtri(Sobol(a, seed=0).random(POINTS))
    values, vectors = np.linalg.eigh(covariance)
    half = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    total = np.zeros(mean.shape)
    for sign in (1.0, -1.0):
        latent = mean[:, None, :] + sign * np.einsum("pa,nba->npb", points, half)
        p = np.exp(latent - latent.max(axis=2, keepdims=True))
        total += (p / p.sum(axis=2, keepdims=True)).sum(axis=1)
    return total / total.sum(axis=1, keepdims=True)


class GaussianProcessClassifier(EvidenceSearch, Classifier):
    """Classify rows by latent functions with a Gaussian process prior (Laplace's approximation).

    Parameters
    ----------
    kernel : A kernel of `lemmata.kernels` for the latent functions; its hyperparameters are where the search starts, and its
        bounds where it stays. Default: a constant times an RBF with a length scale for each column, in the units of the data.
        Its constant stays below 25: the evidence of classes that lie apart grows with it, and the approximation gets worse.
    optimizer : "bfgs" to search for the hyperparameters under which the labels are most probable, None to leave them.
    n_restarts : Further starts of the search, each hyperparameter drawn within a factor of 100 of the first start and its
        bounds; the best end counts.
    tol : Stop when no slope of the log evidence, in the logarithm of a hyperparameter, exceeds this (or rounding ends it).
    max_iter : Iterations of a search at most.
    random_state : Seed of the restarts.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : The classes.
    kernel_ : The kernel with the hyperparameters that were found.
    X_train_ : (n, n_features), the different rows, in the order in which they first came.
    counts_ : (n, n_classes), how often each class was seen there, weights included.
    alpha_ : (a, n): the latent functions at x have the mode Σ alpha_ᵢ k(xᵢ, x). a is 1 for two classes, else their number.
    latent_ : (a, n), the mode at the training rows.
    L_ : (a, n, n), lower triangles of I + D^½KD^½, the curvature at the mode.
    coupling_ : (n, n), for more than two classes: the lower triangle of the sum of D^½(LLᵀ)⁻¹D^½.
    log_marginal_likelihood_ : Laplace's approximation of the log evidence.
    n_iter_, converged_, trace_ : Iterations, whether they reached what `tol` asks for, and minus the log evidence after each.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "a", "b", "b", "b"]
    >>> model = GaussianProcessClassifier().fit(X, y)
    >>> model.predict([[0.5], [4.5]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.5], [4.5], [50.0]]).round(2)
    array([[0.5 , 0.5 ],
           [0.15, 0.85],
           [0.5 , 0.5 ]])
    >>> model.certify(X, y).holds
    True
    """

    most_rows = 500
    _parameter_constraints = {
        "kernel": [Kernel, None],
        "optimizer": [StrOptions({"bfgs"}), None],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        kernel=None,
        *,
        optimizer="bfgs",
        n_restarts=0,
        tol=1e-7,
        max_iter=200,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y). The rows are kept.
        """
        blocks, rows, counts = self._data(X, y, sample_weight, reset=True)
        before = self._prior(rows, counts)

        def fitted(variables):
            return self._attributes(before.at(variables)[0], rows, counts)

        self._search(objective(before, rows, counts), before, fitted, blocks, generator(self.random_state), X=X, y=y)
        return self

    def _data(self, X, y, sample_weight, reset):
        """Validate the rows and take equal ones together."""
        blocks = self._labeled(X, y, sample_weight, reset=reset)
        rows, labels, weight = (np.asarray(part) for part in blocks.map(rows_block))
        apart = self.kernel is not None and tells_apart(self.kernel, rows)
        if apart and (weight != 1).any():
            raise ValueError(f"The kernel {self.kernel!r} tells equal rows apart, which weights cannot; leave White out of it.")
        return blocks, *counted(rows, labels.astype(int), weight, len(self.classes_), keep_apart=apart)

    def _prior(self, rows, counts):
        kernel = self.kernel
        if kernel is None:
            kernel = default_kernel(rows, counts.sum(axis=1), VARIANCE, AMPLITUDES)
        return Prior(kernel, 1.0, False, (1.0, 1.0))

    def _attributes(self, kernel, rows, counts):
        mode = laplace.solve(kernel, rows, as_counts(counts))
        found = {"kernel_": kernel, "X_train_": rows, "counts_": counts, "alpha_": mode.alpha, "latent_": mode.latent}
        found |= {"L_": mode.roots} | ({"coupling_": mode.coupling} if len(mode.alpha) > 1 else {})
        return found | {"log_marginal_likelihood_": mode.evidence}

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        """Give the approximate log evidence of the training rows for other hyperparameters, and its gradient if asked for.

        Parameters
        ----------
        theta : Logarithms of the kernel's hyperparameters, as in `kernel_.theta`; without it, those of the fit.
        """
        check_is_fitted(self)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_
        kernel = self.kernel_ if theta is None else self.kernel_.with_theta(theta)
        value, slopes, _ = laplace.evidence_slopes(kernel, self.X_train_, as_counts(self.counts_))
        return (value, slopes) if eval_gradient else value

    def latent_distribution(self, X):
        """Give mean and variance of the latent functions at each row: (n_rows,) for two classes, else (n_rows, n_classes)."""
        mean, covariance, _ = self._latent(X)
        variance = np.einsum("naa->na", covariance)
        return (mean[:, 0], variance[:, 0]) if mean.shape[1] == 1 else (mean, variance)

    def _latent(self, X):
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        rows = np.asarray(blocks.map(plain_block))
        A = self.kernel_.prepare(self.X_train_)
        D = laplace.weights(laplace.probabilities(self.latent_), self.counts_.sum(axis=1))
        parts = [self._latent_part(np.ascontiguousarray(rows[i : i + CHUNK]), A, D) for i in range(0, len(rows), CHUNK)]
        mean, covariance = (np.concatenate(column) for column in zip(*parts, strict=True))
        return mean, covariance, blocks.dtype

    def _latent_part(self, X, A, D):
        """Return means (m, a) and covariances (m, a, a) at a few rows."""
        a = len(D)
        B = self.kernel_.prepare(X, A)
        cross, prior = self.kernel_.values(A, B), np.asarray(self.kernel_.diagonal(B), dtype=float)
        covariance, shared = np.zeros((len(X), a, a)), []
        with serial_blas():
            for c, (d, L) in enumerate(zip(np.sqrt(D), self.L_, strict=True)):
                V = half_solve(L, d[:, None] * cross)
                # I + D^½KD^½ is well conditioned: the difference is a variance but for rounding of k(x, x).
                covariance[:, c, c] = np.maximum(prior - np.einsum("ij,ij->j", V, V), 0.0)
                if a > 1:
                    E = d[:, None] * back_solve(L, V)
                    shared.append(half_solve(self.coupling_, E))
            if a > 1:
                covariance += np.einsum("akn,bkn->nab", np.array(shared), np.array(shared))
            return cross.T @ self.alpha_.T, covariance

    def predict_proba(self, X):
        """Give the probability of each class: the link averaged over the posterior, for two classes to rounding."""
        mean, covariance, dtype = self._latent(X)
        if mean.shape[1] == 1:
            mean, variance = mean[:, 0], covariance[:, 0, 0]
            return as_output(np.column_stack([averaged(-mean, variance), averaged(mean, variance)]), dtype)
        return as_output(softmax_average(mean, covariance), dtype)

    def predict(self, X):
        """Give each row its most probable class; ties go to the first."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def certify(self, X, y=None, sample_weight=None):
        """Prove the mode and the curvature there, recompute the evidence, and check that its slopes vanish."""
        check_is_fitted(self)
        _, rows, counts = self._data(X, y, sample_weight, reset=False)
        return Certificate(*self._checks(rows, counts), subject=repr(self))

    def _checks(self, rows, counts):
        kept = [
            same(self.X_train_, rows, "rows", "the rows that are kept are those given"),
            same(self.counts_, counts, "counts", "so are the counts of the classes"),
        ]
        yield from kept
        if not all(check.holds for check in kept):
            return
        before, t = self._prior(rows, counts), as_counts(counts)
        with serial_blas():
            K, _ = laplace.matrix(self.kernel_, rows)
            yield from mode_checks(self, K, t)
        same_kind = self.kernel_.with_theta(before.kernel.theta) == before.kernel.with_theta(before.kernel.theta)
        claim = "it is the one asked for, but for what was searched for"
        yield Check("kernel", 0.0 if same_kind else np.inf, 0.0, "proof", claim)
        if self.optimizer is None:
            claim = "they are where the search would have started"
            yield same(self.kernel_.theta, before.start, "hyperparameters", claim, floor=1.0)
        elif len(before.start):
            fun = objective(before, rows, counts)
            yield stationary(lambda variables: fun(variables)[1], self.kernel_.theta, before.bounds)


def objective(before, rows, counts):
    """Return the function of the variables that is minimized: minus the approximate log evidence, its slopes, and the mode."""
    t = as_counts(counts)

    def fun(variables, near=None):
        value, slopes, alpha = laplace.evidence_slopes(before.at(variables)[0], rows, t, near)
        return -value, -slopes, alpha

    return fun
