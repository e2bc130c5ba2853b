"""What the command line prints: one line on the data, the table of models, a certificate."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.table import Table as RichTable
from rich.text import Text

from lemmata.cli.compare import Job, Result, better, measures
from lemmata.cli.promise import DELTA, percent, promises
from lemmata.core.certificate import Certificate
from lemmata.core.table import Table, distinct, is_missing, kind_of, looks_like
from lemmata.theory import Guarantee

PLURALS = {"number": "numbers", "date": "dates", "boolean": "true or false", "text": "text"}
MAX_NAMES = 8  # of columns in the line on the data
STYLES = {"proof": "green", "local": "cyan", "evidence": "yellow"}


def describe(table: Table, name: str) -> Text:
    """Say in one line what was read and how each kind of column was understood."""
    line = Text.assemble((name, "bold"), f": {plural(table.n_rows, 'row')}")
    for kind, kinds in PLURALS.items():
        names = [column for column in table if kind_of(table[column]) == kind and len(distinct(table[column]))]
        if names:
            line.append("; ")
            line.append(kinds, style="cyan")
            line.append(f": {some(names)}")
    empty = [column for column in table if is_missing(table[column]).all()]
    line.append(f"; empty: {some(empty)}" if empty else "")
    missing = sum(int(is_missing(column).sum()) for column in table.values())
    line.append(f"; {missing:,} of {table.n_rows * len(table):,} cells missing." if missing else "; nothing missing.")
    for name, column in table.items():
        if looks_like(column):
            line.append(f"\n{name!r} {looks_like(column)}.", style="yellow")
    return line


def plural(n: int, noun: str) -> str:
    """Write a number and what it counts.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def are(n: int) -> str:
    """Give the verb for so many things."""
    return "is" if n == 1 else "are"


def some(names: Sequence[str]) -> str:
    """List the first names and count the rest."""
    rest = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def plan(job: Job, table: Table) -> Text:
    """Say in one line what will be done."""
    if job.task == "clustering":
        line = Text.assemble(("clustering", "bold"), "; the number of clusters is the one with the best silhouette.")
    else:
        line = Text.assemble((job.task, "bold"), " of ", (str(job.target), "bold"), f"; {job.folds}-fold cross-validation")
        left_out = table.n_rows - job.table.n_rows
        line.append(f"; {plural(left_out, 'row')} without {job.target} {are(left_out)} left out." if left_out else ".")
    if job.task == "classification" and measures(job.table[str(job.target)]):
        line.append(f"\n{job.target} looks like a measurement, for which --task regression is meant.", style="yellow")
    if job.costs is not None:
        line.append(f"\nactions: {some(job.costs.actions)}; {job.costs.source}")
        line.append(f"; a refusal costs {job.costs.reject:g}." if job.costs.reject is not None else ".")
    return line


def too_slow(names: Sequence[str], n_rows: int) -> Text:
    """Say which models are left out because they would take very long."""
    return Text(f"left out, because {n_rows:,} rows take them very long (--models fits them all the same): {', '.join(names)}.")


def remarks(results: list[Result], job: Job, without: Sequence[str] = ()) -> Text:
    """Say which model is the best, and what should be known about it; `without` names models without probabilities."""
    best, baseline, metric = results[0], results[-1], job.metrics[0]
    line = Text.assemble("\nbest: ", (best.name, "bold"), f", {metric} {_score(best, metric, spread=False)}")
    line.append(f", fitted to all {job.table.n_rows:,} rows.")
    dropped = best.model.encoder_.dropped_ if best.model is not None else {}
    for reason in dict.fromkeys(dropped.values()):
        line.append(f"\nleft out: {some([name for name in dropped if dropped[name] == reason])} ({reason}).")
    if without:
        line.append(f"\nnot compared: {no_probabilities(without)}")
    if metric in baseline.scores and not better(best.scores.get(metric, np.nan), baseline.scores[metric], metric):
        why = "the columns do not predict the target" if job.costs is None else "one action for all rows costs no more"
        line.append(f"\nno model is better than the baseline: {why}.", style="yellow")
    if best.certificate is not None and not best.certificate.holds:
        line.append("\nits certificate is refused: do not rely on its parameters.", style="yellow")
    for result in results:
        for warning in result.warnings:
            line.append(f"\n{_said_by(result.name, warning)}", style="yellow")
    return line


def score_rows(results: list[Result], job: Job) -> list[dict[str, str | float]]:
    """Give the table of models as plain rows, for the report."""
    found = promises(results, job)
    head = "" if not found else f"{'error' if job.costs is None else 'cost'} ≤ ({percent(1 - DELTA)})"
    rows = []
    for result in results:
        first, *others = job.metrics
        row: dict[str, str | float] = {"model": result.name, first: _score(result, first, spread=True)}
        row |= {head: _digits(found[result.name]) if result.name in found else ""} if head else {}
        row |= {metric: _score(result, metric, spread=False) for metric in others}
        row |= {"fit": _seconds(result), "certificate": result.verdict}
        rows.append(row)
    return rows


def notes(results: Iterable[Result], job: Job, without: Sequence[str] = ()) -> list[str]:
    """Say how the scores came about, for the report."""
    how = f"Mean of {job.folds}-fold cross-validation ± standard deviation over the folds, columns encoded anew in each fold"
    if job.task == "clustering":
        how = "Silhouette on at most 2,000 rows; the number of clusters is the one whose silhouette is best"
    found = [_said_by(result.name, warning) for result in results for warning in result.warnings]
    how += f". Seconds and certificates are of the fit to all {job.table.n_rows:,} rows."
    if job.costs is not None and job.costs.names_classes and job.costs.reject is not None:
        how += " Accuracy is that of the rows that were not refused."
    return [how, *([f"Not compared: {no_probabilities(without)}"] if without else []), *found]


def _said_by(name: str, warning: str) -> str:
    """Put the name of the model before what it warns of, once."""
    return warning if warning.startswith((f"{name} ", f"{name}'s ")) else f"{name}: {warning}"


def no_probabilities(names: Sequence[str]) -> str:
    """Say why classifiers have no place in a comparison under costs."""
    return f"{some(names)} (no probabilities, which costs are weighed by)."


def result_table(results: Iterable[Result], job: Job) -> RichTable:
    """Make the table of models: scores, seconds, verdict."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column("model", no_wrap=True)
    for metric in job.metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True)
    table.add_column("certificate", overflow="fold")
    for j, result in enumerate(results):
        scores = [_score(result, metric, spread=metric == job.metrics[0]) for metric in job.metrics]
        table.add_row(
            result.name, *scores, _seconds(result), _verdict(result), style="bold" if j == 0 and result.model else None
        )
    return table


def _seconds(result: Result) -> str:
    if np.isnan(result.seconds):
        return ""
    return f"{result.seconds:.1f} s" if result.seconds >= 1 else f"{1000 * result.seconds:.0f} ms"


def _score(result: Result, metric: str, spread: bool) -> str:
    value = result.scores.get(metric, np.nan)
    if np.isnan(value):
        return "–" if not result.error else ""
    if metric == "clusters":
        return f"{value:.0f}"
    deviation = result.spreads.get(metric, np.nan)
    return f"{_digits(value)} ± {_digits(deviation)}" if spread and not np.isnan(deviation) else _digits(value)


def _digits(value: float) -> str:
    return (f"{value:z,.3f}" if abs(value) < 10 else f"{value:,.1f}").replace("-", "−")


def _verdict(result: Result) -> Text:
    if result.error:
        return Text(result.verdict, style="red")
    if result.certificate is None:
        return Text(result.verdict)
    return Text(result.verdict, style=STYLES[result.certificate.kind] if result.certificate.holds else "bold red")


def guarantee_table(found: Guarantee) -> RichTable:
    """Make the table of bounds: value, what was observed, on which rows, and what to know before it is quoted."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("bound")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("observed", justify="right", no_wrap=True)
    table.add_column("remark", overflow="fold")
    for bound in found:
        value = _digits(bound.value) if np.isfinite(bound.value) else "∞"
        style = "yellow" if bound.vacuous or bound.uninformative else "green"
        table.add_row(bound.name, Text(value, style=style), _digits(bound.observed), bound.remark)
    for name, reason in found.inapplicable.items():
        table.add_row(name, "–", "", reason.replace("upper=", "--upper"), style="dim")  # as it is called here
    return table


def certificate_table(certificate: Certificate) -> RichTable:
    """Make the table of checks: value, limit, kind, claim."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("check")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("claim", overflow="fold")
    for check in certificate.checks:
        sign, style = ("≤", STYLES[check.kind]) if check.holds else (">", "bold red")
        limit = f"{check.limit:.0e}" if np.isfinite(check.limit) else "∞"
        table.add_row(
            check.name, f"{check.value:.1e}", Text(sign, style=style), limit, Text(check.kind, style=style), check.claim
        )
    return table
