"""Machines with kernels: scikit-learn (libsvm, one thread) and scikit-learn-intelex (oneDAL, threads), to the same tolerance.

oneDAL takes part where a bar names it: its threads go on spinning for a fifth of a second, which short rows would pay for.
The objective is that of the dual, from coefficients and the exact kernel; oneDAL stops at another measure of its tolerance.
Rows with the default tolerance show what a certified fit costs. Memory of the row with 10,000 rows is that of the whole
process: less what Python and its libraries take before the fit, it must stay below the cache and 100 MiB.
"""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_regression

from bench.harness import Row
from lemmata.kernels import RBF, Linear
from lemmata.svm import SVC, SVR

TOL = 1e-3  # libsvm's own default


def classes(n):
    return make_classification(n, 20, n_informative=10, flip_y=0.05, random_state=0)


def numbers(n):
    X, y = make_regression(n, 20, n_informative=10, noise=10.0, random_state=0)
    return X, (y - y.mean()) / y.std()


def digits():
    return load_digits(return_X_y=True)


def ours(data, cls=SVC, **options):
    if cls is SVR:  # ours is in units of half the range of y, libsvm's in those of y
        options |= {"tol": options["tol"] / (np.ptp(data[1]) / 2)}
    return cls(**options).fit(*data)


def libsvm(data, name="SVC", **options):
    import sklearn.svm

    return getattr(sklearn.svm, name)(**options).fit(*data)


def intel(data, name="SVC", **options):
    import sklearnex.svm

    return getattr(sklearnex.svm, name)(**options).fit(*data)


def dual(data, model, epsilon=None, gamma=None):
    """Return the sum of the dual objectives of all machines, with the exact kernel."""
    X, y = data
    kernel = Linear() if model.kernel == "linear" else RBF(gamma=gamma or 1 / (X.shape[1] * X.var()))
    support, c = np.asarray(model.support_), np.asarray(model.dual_coef_)
    K = kernel(X[support])
    if epsilon is not None:
        return float(y[support] @ c[0] - epsilon * np.abs(c[0]).sum() - 0.5 * c[0] @ K @ c[0])
    own = np.repeat(np.arange(len(model.n_support_)), model.n_support_)
    total, k = 0.0, len(model.n_support_)
    for i in range(k):
        for j in range(i + 1, k):
            beta = np.where(own == i, c[j - 1], np.where(own == j, c[min(i, len(c) - 1)], 0.0))
            total += np.abs(beta).sum() - 0.5 * beta @ K @ beta
    return float(total)


def row(title, make, settings, *, name="SVC", bars, repeats=3, agree=1e-6, with_intel=True, **objective):
    cls = {"SVC": SVC, "SVR": SVR}[name]
    peers = {"scikit-learn": partial(libsvm, name=name, **settings)}
    if with_intel:
        peers["scikit-learn-intelex"] = partial(intel, name=name, **settings)
    return Row(
        title, make, partial(ours, cls=cls, **settings), peers, partial(dual, **objective), bars, agree=agree, repeats=repeats
    )


RBF_CLASSES = {"C": 1.0, "gamma": 0.05, "tol": TOL}
RBF_NUMBERS = {"C": 1.0, "gamma": 0.05, "epsilon": 0.1, "tol": TOL}

ROWS = [
    row(
        "SVC 20,000 × 20, RBF, C = 1, gamma = 0.05, tol 1e-3",
        partial(classes, 20_000),
        RBF_CLASSES,
        bars={"scikit-learn": 4.0, "scikit-learn-intelex": 1.0},
        gamma=0.05,
    ),
    row(
        "SVC 10,000 × 20, RBF, cache 200 MiB", partial(classes, 10_000), RBF_CLASSES | {"cache_size": 200}, bars={}, gamma=0.05
    ),
    row(
        "SVC digits, 10 classes, linear, tol 1e-3",
        digits,
        {"kernel": "linear", "tol": TOL},
        bars={"scikit-learn": 2.0},
        repeats=20,
        with_intel=False,
    ),
    row(
        "SVC digits, 10 classes, RBF, tol 1e-3",
        digits,
        {"kernel": "rbf", "tol": TOL},
        bars={"scikit-learn": 2.0},
        repeats=20,
        with_intel=False,
    ),
    row(
        "SVR 10,000 × 20, RBF, C = 1, gamma = 0.05, epsilon 0.1, tol 1e-3",
        partial(numbers, 10_000),
        RBF_NUMBERS,
        name="SVR",
        bars={"scikit-learn": 4.0},
        with_intel=False,
        gamma=0.05,
        epsilon=0.1,
    ),
    Row(
        "SVC 20,000 × 20, RBF, default tolerance of each (1e-6 and 1e-3)",
        partial(classes, 20_000),
        partial(ours, gamma=0.05),
        {"scikit-learn": partial(libsvm, gamma=0.05)},
        partial(dual, gamma=0.05),
        repeats=2,
    ),
]
