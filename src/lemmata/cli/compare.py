"""The main job: find the task, fit every estimator of the library that can do it, score and certify each.

Nothing here knows an estimator by name: scikit-learn's tags say what each can do, so one that joins the library joins the
comparison. The encoder is fitted inside each fold, because levels and medians learned from the test rows would flatter the
scores. An estimator that fails keeps its row, with the reason, and stops nobody else.

Under costs each classifier that gives probabilities decides by them (`lemmata.decision.Decide`), and what counts is the mean
cost of its decisions in the rows that are left out.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.metrics import silhouette_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import get_tags

from lemmata.cli.estimators import default_estimators, is_meta
from lemmata.core.certificate import Certificate
from lemmata.core.estimator import gives_groups
from lemmata.core.table import Column, Table, distinct, is_missing, kind_of, looks_like, shown
from lemmata.core.table_encoder import PairEncoder, TableEncoder, floats, refuse_infinity
from lemmata.core.table_model import TableModel, encoder_for, reads_pairs
from lemmata.decision.costs import REJECTED, Costs, DecisionModel, read_costs, zero_one_costs
from lemmata.report.decisions import accuracy_of_decided
from lemmata.report.page import VERDICTS, verdict

Task = Literal["regression", "classification", "clustering"]
TYPES = {"regression": "regressor", "classification": "classifier"}
METRICS = {
    "regression": ("R²", "RMSE"),
    "classification": ("accuracy", "log loss"),
    "clustering": ("silhouette", "clusters"),
}
BASELINES = {
    "regression": "baseline: mean",
    "classification": "baseline: most frequent",
    "clustering": "baseline: one cluster",
}
CONSTANT = "baseline: constant action"
MORE_IS_BETTER = {"R²", "accuracy", "silhouette"}

MAX_CLASSES = 10  # so many different whole numbers are still taken for names of classes
CLUSTER_COUNTS = range(2, 9)
SILHOUETTE_ROWS = 2_000  # its cost is quadratic
DIGITS = 6  # of a score: two solvers of the same problem agree to more
MANY_CLASSES = "The number of unique classes is greater than 50%"  # as a warning of scikit-learn begins
LEAST_PROBABILITY = 1e-15  # keeps the logarithm of an impossible event finite


@dataclass(frozen=True)
class Job:
    """What to do: the rows (all with a target), the column to predict, the task, the folds, the seed, and costs if any."""

    table: Table
    target: str | None
    task: Task
    folds: int = 5
    seed: int = 0
    costs: Costs | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the models are scored by, the metric that ranks them first."""
        if self.costs is None:
            return METRICS[self.task]
        return "mean cost", *["accuracy"] * self.costs.names_classes, *["refused"] * (self.costs.reject is not None)

    @property
    def baseline(self) -> str:
        """What the models are compared to."""
        return BASELINES[self.task] if self.costs is None else CONSTANT


@dataclass
class Result:
    """One row of the comparison: scores by metric (mean and spread over the folds), and the model fitted to all rows."""

    name: str
    scores: dict[str, float] = field(default_factory=dict)
    spreads: dict[str, float] = field(default_factory=dict)
    seconds: float = float("nan")
    model: TableModel | None = None
    certificate: Certificate | None = None
    error: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """What the certificate amounts to, in a word or two."""
        if self.error:
            return f"failed: {self.error}"
        return verdict(self.certificate) if self.certificate is not None else ""


def choose_task(table: Table, target: str | None, wanted: str = "auto") -> Task:
    """Tell what the target asks for: regression for measurements, classification for names, clustering without one."""
    if target is None:
        if wanted in ("regression", "classification"):
            raise ValueError(f"{wanted} needs a target; name its column with --target.")
        return "clustering"
    if target not in table:
        raise ValueError(f"there is no column {target!r}; the columns are {', '.join(table)}.")
    if wanted == "clustering":
        raise ValueError("clustering has no target; leave --target out.")
    column, kind, values = table[target], kind_of(table[target]), distinct(table[target])
    if len(values) < 2:
        raise ValueError(
            f"the target {target!r} has {'only one value' if values else 'no values'}: there is nothing to predict."
        )
    if kind == "date":
        raise ValueError(f"the target {target!r} holds dates; turn it into a number, such as days until an event.")
    if wanted != "classification" and looks_like(column):
        raise ValueError(f"the target {target!r} {looks_like(column)}.")
    if wanted == "regression" and kind == "text":
        raise ValueError(f"regression needs numbers, and the target {target!r} holds text.")
    if kind == "text" and len(values) == (~is_missing(column)).sum():
        raise ValueError(f"the target {target!r} is different in every row: there is nothing to learn from it.")
    if wanted in ("regression", "classification"):
        return wanted  # type: ignore[return-value]
    return "regression" if measures(column) else "classification"


def measures(column: Column) -> bool:
    """Tell whether a column looks like measurements: numbers that are not whole, or too many for names of classes.

    Examples
    --------
    >>> measures(np.array([37.5, 80.0, 37.5])), measures(np.array([1.0, 2.0, 1.0, 2.0]))
    (True, False)
    """
    if kind_of(column) != "number":
        return False
    values = distinct(column)
    whole = all(value == np.floor(value) for value in values)
    repeated = 2 * len(values) <= (~is_missing(column)).sum()  # names of classes occur more than once
    return not (whole and repeated and len(values) <= MAX_CLASSES)


def choose_costs(table: Table, target: str | None, task: Task, path: Path | None, reject: float | None) -> Costs | None:
    """Read the costs of the actions, if there are any; zero-one costs if only a refusal has one."""
    if path is None and reject is None:
        return None
    option = "--reject-cost" if path is None else "--costs"
    if target is None:
        raise ValueError(f"{option} needs a target of classes; name its column with --target.")
    if task != "classification":
        raise ValueError(
            f"{option} needs a target of classes, and {target!r} is taken for measurements; --task classification changes that."
        )
    classes = [shown(value) for value in distinct(table[target])]
    return zero_one_costs(classes, float(reject or 0.0)) if path is None else read_costs(path, classes, reject)


def make_job(table: Table, target: str | None, task: Task, folds: int, seed: int, costs: Costs | None = None) -> Job:
    """Leave out the rows without a target, and take no more folds than the rows allow."""
    rows = table if target is None else table.take(~is_missing(table[target]))
    if rows.n_rows < 4:  # two folds of two rows
        found = "there is 1 row" if rows.n_rows == 1 else f"there are {rows.n_rows} rows"
        raise ValueError(f"{found}{'' if target is None else ' with a target'}; at least 4 are needed.")
    return Job(rows, target, task, min(folds, rows.n_rows // 2), seed, costs)


def check_job(job: Job, estimators: dict[str, Any]) -> None:
    """Refuse what no model could be fitted to, before any fit: too few rows of a class, infinity, nothing to learn from."""
    inputs = job.table
    if job.target is not None:
        refuse_infinity(job.table[job.target], job.target)
        inputs = job.table.without(job.target)
    if job.task == "classification":
        _check_folds(job)
    for name, column in inputs.items():
        refuse_infinity(column, name)
    if not any(reads_pairs(estimator) for estimator in estimators.values()):  # which take identifiers of any number
        TableEncoder().fit(inputs)


def _check_folds(job: Job) -> None:
    """Refuse classes of which a fold leaves only one to learn from."""
    y, n_classes = _target(job.table[str(job.target)], job.task)
    if all(len(np.unique(y[train])) > 1 for train, _ in _splits(job, y)):
        return
    counts = np.bincount(y, minlength=n_classes)
    rare, n = int(counts.argmin()), int(counts.min())
    name, rows = shown(distinct(job.table[str(job.target)])[rare]), "1 row" if n == 1 else f"{n} rows"
    needed = "; at least 2 are needed" if n == 1 else ", all in one fold"
    raise ValueError(
        f"class {name!r} of {job.target} has {rows}{needed}: where a fold leaves them out, there is one class and nothing to "
        f"tell apart; add rows of {name!r}."
    )


def candidates(
    task: Task, names: list[str] | None = None, seed: int = 0, n_classes: int = 2, pairs: bool = False
) -> dict[str, Any]:
    """Make every public estimator for the task, and for so many classes, with its default parameters, or those named.

    Those on top of another estimator are left out: by default they are that estimator once more. Those for counts and codes,
    which refuse other tables, are made only if they are named; those for pairs of identifiers if the rows are `pairs`.
    """
    found = {}
    for_two = []
    for name, estimator in default_estimators():
        tags = get_tags(estimator)
        fits = _finds_groups(estimator) if task == "clustering" else tags.estimator_type == TYPES[task]
        if not fits or is_meta(estimator):
            continue
        if n_classes > 2 and not tags.classifier_tags.multi_class:
            for_two.append(name.lower())
        else:
            found[name] = estimator.set_params(random_state=seed) if "random_state" in estimator.get_params() else estimator
    if names is None:
        return {
            name: estimator
            for name, estimator in found.items()
            if not get_tags(estimator).input_tags.positive_only and (pairs or not reads_pairs(estimator))
        }
    lower = {name.lower(): name for name in found}
    unknown = [name for name in names if name.lower() not in lower]
    if unknown and unknown[0].lower() in for_two:
        raise ValueError(f"{unknown[0]} tells two classes apart, and the target has {n_classes}.")
    if unknown and found:
        raise ValueError(f"no model {unknown[0]!r} for {task}; there are {', '.join(found)}.")
    return {lower[name.lower()]: found[lower[name.lower()]] for name in names if found}


def _finds_groups(estimator: Any) -> bool:
    """Tell whether an estimator finds groups of rows of measurements; mixtures over codes and counts read other tables."""
    return gives_groups(estimator) and not get_tags(estimator).input_tags.categorical


def split_by_rows(estimators: dict[str, Any], n_rows: int) -> tuple[dict[str, Any], list[str]]:
    """Tell the estimators that are fast enough for so many rows from the names of those that would take very long."""
    fast = {name: estimator for name, estimator in estimators.items() if n_rows <= getattr(estimator, "most_rows", np.inf)}
    return (fast, [name for name in estimators if name not in fast]) if fast else (estimators, [])


def split_by_probabilities(estimators: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Tell the classifiers that can weigh costs from the names of those that cannot, for they give no probabilities."""
    able = {name: estimator for name, estimator in estimators.items() if hasattr(estimator, "predict_proba")}
    unable = [name for name in estimators if name not in able]
    if unable and not able:
        raise ValueError(f"{', '.join(unable)}: no probabilities, which costs are weighed by; choose another model.")
    return able, unable


def compare(job: Job, estimators: dict[str, Any], tick: Callable[[], None]) -> list[Result]:
    """Score, fit and certify each estimator; best first, then those without a score, then the baseline.

    Parameters
    ----------
    tick : Called after each fit, `n_fits(job, estimators)` times in all.
    """
    results = {name: Result(name) for name in estimators}
    baseline = Result(job.baseline)
    if job.task == "clustering":
        baseline.scores = {"clusters": 1.0}
        estimators = {name: _choose_clusters(job, e, results[name], tick) for name, e in estimators.items()}
    else:
        _cross_validate(job, estimators, results, baseline, tick)
    for name, estimator in estimators.items():
        with _reported(results[name]):
            _fit_all(job, estimator, results[name])
        tick()
    return [*sorted(results.values(), key=lambda result: rank(result, *job.metrics)), baseline]


def n_fits(job: Job, estimators: dict[str, Any]) -> int:
    """Count the ticks of `compare`."""
    if job.task == "clustering":
        return sum(1 + len(_counts(estimator)) for estimator in estimators.values())
    return len(estimators) * (1 + job.folds)


def rank(result: Result, *metrics: str) -> tuple[bool, tuple[float, ...], int, str]:
    """Order by the first metric, among equals by the next ones, each on its better side, then by how much is certified."""
    failed = bool(result.error) or bool(np.isnan(result.scores.get(metrics[0], np.nan)))
    verdicts = list(VERDICTS.values())  # from proofs to evidence
    known = verdicts.index(result.verdict) if result.verdict in verdicts else len(verdicts)
    return failed, tuple(_penalty(result.scores.get(metric, np.nan), metric) for metric in metrics), known, result.name


def better(score: float, other: float, metric: str) -> bool:
    """Tell whether a score is better than another."""
    return _penalty(score, metric) < _penalty(other, metric)


def _penalty(score: float, metric: str) -> float:
    """Turn a score into a number of which less is better."""
    return np.inf if np.isnan(score) else round(float(-score if metric in MORE_IS_BETTER else score), DIGITS)


def holds_pairs(job: Job) -> bool:
    """Tell whether rows are pairs of identifiers that come again and again: two columns of text or whole numbers.

    Examples
    --------
    >>> user, item, stars = np.array([1.0, 1.0, 2.0, 2.0]), np.array(list("abab"), dtype=object), np.array([5.0, 1.0, 4.0, 2.0])
    >>> ratings = Table({"user": user, "item": item, "stars": stars})
    >>> holds_pairs(Job(ratings, "stars", "regression"))
    True
    """
    inputs = job.table if job.target is None else job.table.without(job.target)
    return len(inputs) == 2 and all(
        not is_missing(column).any()
        and 2 * len(distinct(column)) <= len(column)
        and (kind_of(column) == "text" or (kind_of(column) == "number" and (column == np.round(column)).all()))
        for column in inputs.values()
    )


def count_classes(job: Job) -> int:
    """Count the classes of the target; 0 if there are none."""
    return len(distinct(job.table[str(job.target)])) if job.task == "classification" else 0


@contextmanager
def _reported(result: Result) -> Iterator[None]:
    """Turn an exception into the result's one-sentence reason, and warnings into its notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", MANY_CLASSES)  # said once, before any fit
        try:
            yield
        except Exception as error:  # whatever it is, the others go on
            result.error = result.error or (str(error).strip().splitlines() or [type(error).__name__])[0]
    for message in dict.fromkeys(str(w.message).splitlines()[0] for w in caught if issubclass(w.category, UserWarning)):
        if message not in result.warnings:
            result.warnings.append(message)


def _cross_validate(
    job: Job, estimators: dict[str, Any], results: dict[str, Result], baseline: Result, tick: Callable[[], None]
) -> None:
    y, n_classes = _target(job.table[str(job.target)], job.task)
    inputs = job.table.without(str(job.target))
    encoders = {name: _fold_encoder(estimator) for name, estimator in estimators.items()}
    collected: dict[str, list[tuple[float, ...]]] = {name: [] for name in [*estimators, ""]}
    for train, test in _splits(job, y):
        encoded: dict[str, tuple[Column, Column]] = {}
        for name, estimator in estimators.items():
            with _reported(results[name]):
                if not results[name].error:
                    encoder = encoders[name]
                    if repr(encoder) not in encoded:
                        encoded[repr(encoder)] = _encoded(encoder, inputs, train, test)
                    X_train, X_test = encoded[repr(encoder)]
                    fitted = _model(job, estimator, np.unique(y[train])).fit(X_train, y[train])
                    collected[name].append(_scores(job, y[test], fitted, X_test, n_classes))
            tick()
        collected[""].append(_baseline_scores(job, y[train], y[test], n_classes))
    for name, result in [*results.items(), ("", baseline)]:
        if collected[name] and not result.error:
            for metric, values in zip(job.metrics, np.array(collected[name]).T, strict=True):
                known = values[~np.isnan(values)]
                result.scores[metric] = float(known.mean()) if len(known) else np.nan
                result.spreads[metric] = float(known.std(ddof=1)) if len(known) > 1 else np.nan


def _fold_encoder(estimator: Any) -> TableEncoder | PairEncoder:
    """Make the encoder of a fold: pairs and counts as they are, other columns on one scale."""
    return PairEncoder() if reads_pairs(estimator) else TableEncoder(scale=not takes_counts(estimator))


def _encoded(encoder: TableEncoder | PairEncoder, inputs: Table, train: Column, test: Column) -> tuple[Column, Column]:
    """Encode the rows of a fold as those that are fitted tell."""
    encoder.fit(inputs.take(train))
    return encoder.transform(inputs.take(train)), encoder.transform(inputs.take(test))


def takes_counts(estimator: Any) -> bool:
    """Tell whether a classifier takes counts or codes: on a common scale with other columns they would be neither.

    Examples
    --------
    >>> from lemmata.naive_bayes import GaussianNB, MultinomialNB
    >>> takes_counts(GaussianNB()), takes_counts(MultinomialNB())
    (False, True)
    """
    tags = get_tags(estimator)
    return bool(tags.estimator_type == "classifier" and tags.input_tags.positive_only)


def _splits(job: Job, y: Column) -> list[tuple[Column, Column]]:
    plain = KFold(job.folds, shuffle=True, random_state=job.seed)
    if job.task == "regression":
        return list(plain.split(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer rows than folds is in some folds only: nothing to act on
        try:
            return list(StratifiedKFold(job.folds, shuffle=True, random_state=job.seed).split(y, y))
        except ValueError:  # every class has fewer rows than there are folds
            return list(plain.split(y))


def _target(column: Column, task: Task) -> tuple[Column, int]:
    if task == "regression":
        return floats(column), 0
    position = {value: j for j, value in enumerate(distinct(column))}
    return np.array([position[value] for value in column]), len(position)


def _model(job: Job, estimator: Any, present: Any) -> Any:
    """Give what is fitted: a copy of the estimator, on which a decision is put under costs; a fold may lack a class."""
    return clone(estimator) if job.costs is None else job.costs.decide(clone(estimator), present)


def _scores(job: Job, y: Column, fitted: Any, X: Column, n_classes: int) -> tuple[float, ...]:
    if job.costs is not None:
        return _decision_scores(job.costs, y, fitted.predict(X))
    if job.task == "regression":
        return _regression_scores(y, np.asarray(fitted.predict(X)))
    accuracy = float(np.mean(fitted.predict(X) == y))
    if not hasattr(fitted, "predict_proba"):
        return accuracy, np.nan
    probabilities = np.zeros((len(y), n_classes))
    probabilities[:, fitted.classes_] = fitted.predict_proba(X)  # a fold may lack a class
    return accuracy, _log_loss(probabilities, y)


def _decision_scores(costs: Costs, y: Column, taken: Any) -> tuple[float, ...]:
    cost = float(costs.choices[costs.taken(taken), y].mean())
    right = accuracy_of_decided(taken, np.array(costs.classes)[y], REJECTED)
    refused = float(np.mean(np.asarray(taken) == REJECTED))
    return cost, *[right] * costs.names_classes, *[refused] * (costs.reject is not None)


def _baseline_scores(job: Job, y_train: Column, y_test: Column, n_classes: int) -> tuple[float, ...]:
    if job.costs is not None:
        best = int((job.costs.choices @ np.bincount(y_train, minlength=n_classes)).argmin())
        return _decision_scores(job.costs, y_test, np.full(len(y_test), [*job.costs.actions, REJECTED][best]))
    if job.task == "regression":
        return _regression_scores(y_test, np.full(len(y_test), y_train.mean()))
    counts = np.bincount(y_train, minlength=n_classes) + 1.0  # add one: no class is impossible
    shares = np.tile(counts / counts.sum(), (len(y_test), 1))
    return float(np.mean(y_test == counts.argmax())), _log_loss(shares, y_test)


def _regression_scores(y: Column, predicted: Column) -> tuple[float, float]:
    error, spread = float(np.mean((y - predicted) ** 2)), float(np.var(y))
    return 1 - error / spread if spread else np.nan, float(np.sqrt(error))


def _log_loss(probabilities: Column, y: Column) -> float:
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], LEAST_PROBABILITY)).mean())


def _counts(estimator: Any) -> list[dict[str, int]]:
    """Return the settings to try: numbers of clusters or components, or nothing for one that finds the number itself."""
    found = [name for name in ("n_clusters", "n_components") if name in estimator.get_params()]
    return [{found[0]: k} for k in CLUSTER_COUNTS] if found else [{}]


def _choose_clusters(job: Job, estimator: Any, result: Result, tick: Callable[[], None]) -> Any:
    """Return the estimator with the number of clusters whose silhouette, over filled columns, is best."""
    X, filled = (encoder.fit_transform(job.table) for encoder in (encoder_for(estimator), TableEncoder(scale=True)))
    rows = np.arange(len(X))
    if len(X) > SILHOUETTE_ROWS:
        rows = np.random.default_rng(job.seed).choice(len(X), SILHOUETTE_ROWS, replace=False)
    chosen, best, attempt = estimator, -np.inf, result
    for setting in _counts(estimator):
        attempt = Result(result.name)
        with _reported(attempt):
            model = clone(estimator).set_params(**setting)
            labels = np.asarray(model.fit_predict(X))[rows]
            found = len(np.unique(labels))
            silhouette = float(silhouette_score(filled[rows], labels)) if 1 < found < len(rows) else np.nan
            if silhouette > best or not result.scores:
                chosen, best = clone(model), np.nan_to_num(silhouette, nan=-np.inf)
                result.scores = {"silhouette": silhouette, "clusters": float(found)}
        tick()
    if not result.scores:
        result.error = attempt.error
    return chosen


def _fit_all(job: Job, estimator: Any, result: Result) -> None:
    if result.error:
        return
    start = perf_counter()
    wrapping = TableModel if job.costs is None else DecisionModel
    as_they_are = TableEncoder(keep_missing=get_tags(estimator).input_tags.allow_nan) if takes_counts(estimator) else None
    model = wrapping(_model(job, estimator, slice(None)), job.target, as_they_are).fit(job.table)
    result.seconds = perf_counter() - start
    result.model = model
    with suppress(NotImplementedError):  # an estimator that has no certificate yet
        result.certificate = model.certify(job.table)
