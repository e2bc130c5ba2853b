"""Do the bounds hold? Fit models to samples of worlds whose risks are known, and count how often a bound is exceeded.

Every bound of `lemmata.theory.guarantee` must be exceeded in at most δ of the fits. In the same simulation the forms that are
commonly misused are exceeded more often: so the count can fail. A fit is a function of its seed alone.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

FITS = 2000
DELTA = 0.05
PROCESSES = 2
TEST_ROWS = 20_000  # by which the risk of what has no closed form is known to 0.002
TEN_PERCENT = -float(ndtri(0.1))  # half the distance of two round normal classes with a Bayes error of 10 %


class Outcome(NamedTuple):
    """A bound, what it bounds, and whether it is one that should fail."""

    name: str
    bound: float
    truth: float
    misused: bool = False
    limit: float = 1.0


def gaussians(rng, n, d, distance):
    """Draw rows of two round normal classes, y = ±1, apart by twice the distance along the first axis."""
    y = rng.choice([-1, 1], n)
    X = rng.standard_normal((n, d))
    X[:, 0] += distance * y
    return X, y


def plane_risk(model, distance):
    """Give the exact risk of a plane in the world of `gaussians`."""
    w, b = model.coef_[0], float(model.intercept_[0])
    size = np.linalg.norm(w)
    return float(ndtr(-(distance * w[0] + b) / size) + ndtr(-(distance * w[0] - b) / size)) / 2


@cache
def known_rows(d, distance, n=TEST_ROWS):
    """Draw the rows by which risks are measured, always the same."""
    return gaussians(np.random.default_rng(99), n, d, distance)


def promised(result, truth, **others) -> Iterator[Outcome]:
    """List the bounds on the model's own 0/1 risk, those on other risks that are known, and the best."""
    for bound in result:
        if bound.name in others:
            yield Outcome(bound.name, bound.value, others[bound.name])
        elif bound.target == "model" and bound.kind == "high-probability" and bound.risk == "zero-one":
            yield Outcome(bound.name, bound.value, truth)
    if result.best.risk == "zero-one":
        yield Outcome("best", result.best.value, truth)


def tested(rng) -> Iterator[Outcome]:
    """A linear discriminant, 200 rows to fit it, 1,000 rows to test it; a task with 10 % error."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 200, 3, TEN_PERCENT)
    rows, labels = gaussians(rng, 1000, 3, TEN_PERCENT)
    model = LinearDiscriminantAnalysis().fit(X, y)
    truth = plane_risk(model, TEN_PERCENT)
    yield from promised(guarantee(model, X, y, DELTA, (rows, labels), refit=False), truth)
    share = float((model.predict(rows[:100]) != labels[:100]).mean())
    wald = share - ndtri(DELTA) * np.sqrt(share * (1 - share) / 100)
    yield Outcome("misused: Wald's interval on 100 rows", wald, truth, misused=True)


def _counted(errors, n):
    from lemmata.theory.bounds.holdout import clopper_pearson

    return clopper_pearson(errors, n, DELTA)


def chosen(rng) -> Iterator[Outcome]:
    """The best of 50 random planes by 200 rows, promised at δ/50; and as if nothing had been chosen."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from lemmata.theory import guarantee

    rows, labels = gaussians(rng, 200, 20, 0.3)
    best, fewest = None, np.inf
    for _ in range(50):
        model = LinearDiscriminantAnalysis().fit(*gaussians(rng, 40, 20, 0.3))
        errors = (model.predict(rows) != labels).sum()
        if errors < fewest:
            best, fewest = model, errors
    truth = plane_risk(best, 0.3)
    for outcome in promised(guarantee(best, holdout=(rows, labels), delta=DELTA, n_models=50), truth):
        yield outcome._replace(name=f"{outcome.name}, 50 models")
    naive = guarantee(best, holdout=(rows, labels), delta=DELTA).best.value
    yield Outcome("misused: hold-out of the winner", naive, truth, misused=True)


def planes(rng) -> Iterator[Outcome]:
    """A linear discriminant in 3 columns fitted to 300 rows: bounds from these rows alone."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from lemmata.theory import guarantee
    from lemmata.theory.bounds import langford_bound
    from lemmata.theory.guarantees.linear import cosines

    X, y = gaussians(rng, 300, 3, 1.0)
    model = LinearDiscriminantAnalysis().fit(X, y)
    plane = np.append(model.coef_[0], model.intercept_)
    plane /= np.linalg.norm(plane)
    length = langford_bound(cosines(X, y, plane), DELTA)[1]
    rows, labels = known_rows(3, 1.0)
    random = float(ndtr(-length * cosines(rows, labels, plane)).mean())
    yield from promised(guarantee(model, X, y, DELTA), plane_risk(model, 1.0), **{"PAC-Bayes, random planes": random})


def scaled(rng) -> Iterator[Outcome]:
    """Logistic regression behind a scaler fitted to the same 300 rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 300, 3, 1.5)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    rows, labels = known_rows(3, 1.5)
    yield from promised(guarantee(model, X, y, DELTA), float((model.predict(rows) != labels).mean()))


def posterior(rng) -> Iterator[Outcome]:
    """Bayesian logistic regression fitted to 400 rows: its draws, and its mode."""
    from lemmata.linear_model import BayesianLogisticRegression
    from lemmata.theory import guarantee

    X, y = gaussians(rng, 400, 3, 1.5)
    model = BayesianLogisticRegression().fit(X, y)
    mean, variance = model.score_distribution(known_rows(3, 1.5)[0])
    draws = float(ndtr(-known_rows(3, 1.5)[1] * mean / np.sqrt(variance)).mean())
    result = guarantee(model, X, y, DELTA, refit=False)
    yield from promised(result, plane_risk(model, 1.5), **{"PAC-Bayes, the posterior's draws": draws})


def trees(rng) -> Iterator[Outcome]:
    """A tree of 4 leaves fitted to 500 rows that are rounded to quarters."""
    from sklearn.tree import DecisionTreeClassifier

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 500, 2, 1.0)
    X = np.round(X * 4) / 4
    model = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    rows, labels = known_rows(2, 1.0)
    truth = float((model.predict(np.round(rows * 4) / 4) != labels).mean())
    eighths = np.arange(-64, 65) / 8  # a threshold is the middle of two quarters
    yield from promised(guarantee(model, X, y, DELTA, thresholds=eighths), truth)


def boosted(rng) -> Iterator[Outcome]:
    """Eight boosted stumps fitted to 300 rows."""
    from sklearn.ensemble import AdaBoostClassifier

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 300, 2, 1.0)
    model = AdaBoostClassifier(n_estimators=8, random_state=0).fit(X, y)
    rows, labels = known_rows(2, 1.0)
    yield from promised(guarantee(model, X, y, DELTA), float((model.predict(rows) != labels).mean()))


def forest(rng) -> Iterator[Outcome]:
    """A forest of 12 trees fitted to 300 rows."""
    from sklearn.ensemble import RandomForestClassifier

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 300, 3, 1.0)
    model = RandomForestClassifier(12, random_state=int(rng.integers(1 << 31))).fit(X, y)
    rows, labels = known_rows(3, 1.0)
    yield from promised(guarantee(model, X, y, DELTA), float((model.predict(rows) != labels).mean()))


def machine(kernel, rng) -> Iterator[Outcome]:
    """A support vector machine fitted to 200 rows."""
    from sklearn.svm import SVC

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 200, 2, 2.0)
    model = SVC(kernel=kernel, gamma=0.5).fit(X, y)
    rows, labels = known_rows(2, 2.0)
    truth = float((model.predict(rows) != labels).mean())
    yield from promised(guarantee(model, X, y, DELTA, refit=False), truth)
    if kernel == "rbf":
        errors = int((model.predict(X) != y).sum())
        yield Outcome("misused: training errors as a test", _counted(errors, 200), truth, misused=True)


def stable(rng) -> Iterator[Outcome]:
    """A support vector machine without an intercept fitted to 4,000 rows of length one, its C falling with the rows."""
    from sklearn.svm import LinearSVC

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 4000, 2, 2.0)
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = LinearSVC(loss="hinge", C=1 / (2 * len(y)), fit_intercept=False, max_iter=10_000, random_state=0).fit(X, y)
    rows, labels = known_rows(2, 2.0)
    truth = float((model.predict(rows / np.linalg.norm(rows, axis=1)[:, None]) != labels).mean())
    yield from promised(guarantee(model, X, y, DELTA, radius=1.0, refit=False), truth)


def mistakes(rng) -> Iterator[Outcome]:
    """A perceptron in the order of the table, one pass over 300 rows; and until it errs no more, on classes apart."""
    from lemmata.linear_model import Perceptron
    from lemmata.theory import guarantee

    X, y = gaussians(rng, 300, 3, 1.0)
    model = Perceptron(max_iter=1, shuffle=False).fit(X, y)
    yield from promised(guarantee(model, X, y, DELTA, refit=False), plane_risk(model, 1.0))
    apart = X[:, 0] * y > 0.2  # rows with a gap between the classes
    X, y = X[apart], y[apart]
    model = Perceptron(shuffle=False).fit(X, y)
    rows, labels = known_rows(3, 1.0)
    kept = rows[:, 0] * labels > 0.2
    truth = float((model.predict(rows[kept]) != labels[kept]).mean())
    for outcome in promised(guarantee(model, X, y, DELTA, refit=False), truth):
        yield outcome._replace(name=f"{outcome.name}, to the end")


def neighbors(rng) -> Iterator[Outcome]:
    """Five nearest neighbors among 2,000 rows."""
    from sklearn.neighbors import KNeighborsClassifier

    from lemmata.theory import guarantee

    X, y = gaussians(rng, 2000, 2, 1.0)
    model = KNeighborsClassifier(5).fit(X, y)
    rows, labels = known_rows(2, 1.0, 2000)
    yield from promised(guarantee(model, X, y, DELTA), float((model.predict(rows) != labels).mean()))


def parity(rng) -> Iterator[Outcome]:
    """The rule that predicts the parity of the labels it has seen, and its leave-one-out errors taken for a test."""
    y = rng.integers(0, 2, 101)
    yield Outcome("misused: leave-one-out errors as a test", _counted(int(101 * (y.sum() % 2)), 101), 0.5, misused=True)


def priors(rng) -> Iterator[Outcome]:
    """PAC-Bayes with a prior that was fitted to the rows it is scored on: the best of 2,000 coins."""
    from lemmata.theory.bounds.pac_bayes import seeger_bound

    errors = rng.binomial(50, 0.5, 2000).min() / 50
    yield Outcome("PAC-Bayes, 2,000 coins", seeger_bound(errors, np.log(2000), 50, DELTA), 0.5)
    yield Outcome("misused: prior from the same rows", seeger_bound(errors, 0.0, 50, DELTA), 0.5, misused=True)


def several(rng) -> Iterator[Outcome]:
    """The least of eight bounds, from eight sets of 100 rows: at δ/8 each, and as if nothing had been chosen."""
    from lemmata.theory.bounds.holdout import clopper_pearson

    errors = int(rng.binomial(100, 0.25, 8).min())
    yield Outcome("least of 8, each at δ/8", clopper_pearson(errors, 100, DELTA / 8), 0.25)
    yield Outcome("misused: least of 8, each at δ", clopper_pearson(errors, 100, DELTA), 0.25, misused=True)


@cache
def heavy_tails(n):
    """Draw rows and noise of heavy tails, always the same."""
    rng = np.random.default_rng(98)
    return rng.standard_normal((n, 3)), rng.standard_t(3, n)


def regression(rng) -> Iterator[Outcome]:
    """Ridge regression with noise of heavy tails, 200 rows to fit it and 250 to test it, losses clipped at 4."""
    from lemmata.linear_model import Ridge
    from lemmata.theory import guarantee

    w = np.array([1.0, -2.0, 0.5])
    X, rows = rng.standard_normal((200, 3)), rng.standard_normal((250, 3))
    y, labels = X @ w + rng.standard_t(3, 200), rows @ w + rng.standard_t(3, 250)
    model = Ridge(1.0).fit(X, y)
    Z, noise = heavy_tails(40_000)
    errors = np.abs(Z @ w + noise - model.predict(Z))
    result = guarantee(model, X, y, DELTA, (rows, labels), upper=4.0, tolerance=3.0)
    clipped = float(np.minimum(errors, 4.0).mean())
    known = {"hold-out, larger errors": float((errors > 3).mean())}
    known["hold-out, level that 90 % of the errors keep"] = float(np.quantile(errors, 0.9))
    for bound in result:
        truth = known.get(bound.name, clipped)
        yield Outcome(bound.name, bound.value, truth, limit=bound.limit)
    yield Outcome("best", result.best.value, clipped, limit=4.0)


WORLDS: dict[str, Callable] = {
    "hold-out of 1,000": tested,
    "best of 50 on a hold-out": chosen,
    "linear discriminant, n = 300": planes,
    "logistic behind a scaler, n = 300": scaled,
    "Bayesian logistic, n = 400": posterior,
    "tree of 4 leaves, n = 500": trees,
    "8 boosted stumps, n = 300": boosted,
    "forest of 12 trees, n = 300": forest,
    "linear SVM, n = 200": partial(machine, "linear"),
    "RBF SVM, n = 200": partial(machine, "rbf"),
    "stable SVM, n = 4,000": stable,
    "perceptron, n = 300": mistakes,
    "5 nearest neighbors, n = 2,000": neighbors,
    "parity rule": parity,
    "2,000 coins": priors,
    "eight sets of 100 rows": several,
    "ridge, heavy tails": regression,
}


def outcomes(world: str, seeds) -> list[tuple[Outcome, ...]]:
    """Run a world once for each seed, without threads of any library."""
    from threadpoolctl import threadpool_limits

    import lemmata

    with warnings.catch_warnings(), threadpool_limits(1), lemmata.config(n_threads=1):
        warnings.simplefilter("ignore")
        return [tuple(WORLDS[world](np.random.default_rng([seed, *world.encode()]))) for seed in seeds]


class Summary(NamedTuple):
    """How a bound did in a world."""

    name: str
    fits: int
    exceeded: int
    median: float
    gap: float
    vacuous: float
    misused: bool


def summary(runs: list[tuple[Outcome, ...]]) -> list[Summary]:
    """Count, for each bound, how often it was exceeded, and how far above the truth it was."""
    by_name: dict[str, list[Outcome]] = {}
    for run in runs:
        for outcome in run:
            by_name.setdefault(outcome.name, []).append(outcome)
    found = []
    for name, group in by_name.items():
        bounds, truths = np.array([o.bound for o in group]), np.array([o.truth for o in group])
        limit = group[0].limit
        gap = float(np.median(np.minimum(bounds, limit) - truths))
        counts = len(group), int((truths > bounds + 1e-12).sum())
        found.append(Summary(name, *counts, float(np.median(bounds)), gap, float((bounds >= limit).mean()), group[0].misused))
    return found


def report(fits: int = FITS) -> str:
    """Run every world and write what happened as a Markdown table."""
    lines = [f"δ = {DELTA}; `exceeded` is the share of {fits} fits in which the true risk is larger than the bound.", ""]
    lines += ["| world | bound | exceeded | median bound | median gap | vacuous |", "|---|---|---:|---:|---:|---:|"]
    with ProcessPoolExecutor(PROCESSES) as pool:
        for world in WORLDS:
            start = time.perf_counter()
            parts = [range(i, fits, PROCESSES) for i in range(PROCESSES)]
            runs = [run for part in pool.map(partial(outcomes, world), parts) for run in part]
            for s in summary(runs):
                share = s.exceeded / s.fits
                mark = "✓" if (share > DELTA) == s.misused else "✗"
                lines.append(f"| {world} | {s.name} | {share:.4f} {mark} | {s.median:.4f} | {s.gap:.4f} | {s.vacuous:.2f} |")
            print(f"{world}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(report(int(sys.argv[1]) if len(sys.argv) > 1 else FITS))
