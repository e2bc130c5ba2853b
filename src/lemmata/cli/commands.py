"""The commands. Each reads, calls the library and prints; what is wrong with the input is one sentence and exit code 2.

Nothing heavy is imported before a command runs, so that `lemmata --help` answers at once.
"""

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import wraps
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

app = typer.Typer(
    name="lemmata",
    help="Machine learning that shows its proof: fit models to a table, compare them, and certify every fit.",
    epilog="To see it work: **lemmata demo**",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MAX_SECTIONS = 3  # models with a section of their own in the report of `fit`; its score table has them all
COST_DIGITS = 12  # that are written: expected costs are sums, and 0.1 + 0.2 is 0.3

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV or Parquet file; a CSV file begins with a line of column names.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that 'lemmata fit' saved.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column to predict; without one, rows are clustered.")]
Folder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="For model and report; default: the name of DATA and '-fit'.")
]


class TaskChoice(StrEnum):
    """What `--task` may be."""

    auto = "auto"
    regression = "regression"
    classification = "classification"
    clustering = "clustering"


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line."""
    app()


def one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what the user can put right into one red sentence on stderr and exit code 2."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except (ValueError, OSError, ImportError) as error:
                fail(_sentence(error))

    return wrapped


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Say a warning in a sentence on stderr; those for developers, of what will change or of rounding, are not for users."""
    if issubclass(category, UserWarning):
        sentence = (str(message).strip().splitlines() or [category.__name__])[0]
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[yellow]{escape(sentence)}[/yellow]")


def fail(sentence: str) -> None:
    """Say why, and leave with exit code 2."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]{escape(sentence)}[/red]")
    raise typer.Exit(2)


@app.command()
@one_sentence
def fit(
    data: Data,
    target: Target = None,
    models: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Models, with commas between them; default: all that suit the task.")
    ] = None,
    out: Folder = None,
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Parts of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the folds and of models that draw at random.")] = 0,
    task: Annotated[
        TaskChoice, typer.Option(metavar="TASK", help="auto, regression, classification or clustering.")
    ] = TaskChoice.auto,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file of costs: a row for each action, its name first, a column for each class. Less is better.",
        ),
    ] = None,
    reject_cost: Annotated[
        float | None, typer.Option(metavar="COST", help="Cost of refusing to decide; default: never refuse.")
    ] = None,
) -> None:
    """Fit models to a table, compare and certify them, save the best.

    Reads numbers, text, dates, true and false, and missing values. Prints a table of cross-validated scores and
    certificates; writes `model.lemmata` and `report.html`.

    With costs, models decide what to do: each takes the action of least expected cost, they are compared by the mean cost
    of their actions, and the saved model predicts actions.

    Example: `lemmata fit rents.csv --target rent`
    """
    from lemmata.core.table import read_table

    names = [name.strip() for name in models.split(",") if name.strip()] if models else None
    folder = out or Path(f"{data.stem}-fit")
    run_fit(read_table(data), data, target, names, folder, folds, seed, task.value, costs, reject_cost)


@app.command()
@one_sentence
def rules(
    data: Data,
    min_support: Annotated[
        float, typer.Option(metavar="SHARE", help="Least share of the baskets; from 2 on a number of baskets.")
    ] = 0.1,
    min_confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="How often, at least, who has the one has the other.")
    ] = 0.8,
    min_lift: Annotated[
        float | None, typer.Option(metavar="FACTOR", help="By which factor, at least, that is more often than in all baskets.")
    ] = None,
    max_length: Annotated[int | None, typer.Option(metavar="N", min=2, help="Most items of a set.")] = None,
    basket: Annotated[str | None, typer.Option(metavar="COLUMN", help="For pairs: the column of the baskets.")] = None,
    item: Annotated[str | None, typer.Option(metavar="COLUMN", help="For pairs: the column of the items.")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Test the rules (Fisher), so that at most this share is chance (Benjamini-Hochberg)."
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Rules to print.")] = 20,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV or Parquet file to write all rules to.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="File to save the frequent sets to, as a model.")] = None,
) -> None:
    """Find what goes together: frequent sets of items, and rules.

    DATA has a column of yes and no for each item, or pairs of a basket and an item in two columns, or columns of text whose
    values are the items. Prints the rules of the greatest lift, and whether the frequent sets are proved complete.

    Example: `lemmata rules baskets.csv --min-support 0.02 --min-confidence 0.5`
    """
    from lemmata.cli import rules as work
    from lemmata.cli.baskets import read_baskets

    least = work.check_options(min_support, min_confidence, min_lift, alpha)
    work.check_files(data, out, save)
    found = read_baskets(data, basket, item)
    console = Console(highlight=False)
    console.print(work.described(found, data.name))
    model, certificate = work.fit_baskets(found, least, max_length)
    best = work.best_rules(model, min_confidence, min_lift, alpha)
    console.print(work.counted(found, model.itemsets_, best))
    if top and len(best):
        console.print()
        console.print(work.rule_table(best, top))
    console.print()
    excluding = [] if len(best) else work.what_excludes(model, min_confidence, min_lift, alpha)
    console.print(work.remarks(model.itemsets_, best, top, out, certificate, excluding))
    if save is not None:
        model.save(save)
    if out is not None:
        work.write_rules(best, out)
    written = [escape(str(path)) for path in (save, out) if path is not None]
    if written:
        console.print(f"[bold]saved[/bold]  {', '.join(written)}", soft_wrap=True)


@app.command()
@one_sentence
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV file to write; '-' prints it.")] = Path("predictions.csv"),
) -> None:
    """Predict the rows of a table with a saved model.

    Writes the table with the predictions beside it. If the table has the target, the score is printed too.

    Example: `lemmata predict rents-fit/model.lemmata new.csv --out predictions.csv`
    """
    from lemmata.cli.show import plural
    from lemmata.core.table import read_table, write_table

    _check_folder(out)
    fitted, table = _load(model), read_table(data)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} is the data itself; choose another file for the predictions.")
    predicted = _with_predictions(fitted, table)
    if str(out) == "-":
        write_table(predicted, sys.stdout)
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        write_table(predicted, file)
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{escape(str(out))}: {plural(table.n_rows, 'row')}, predictions in [bold]{escape(list(predicted)[len(table)])}[/bold]."
    )
    if fitted.target in table:
        with suppress(ValueError):  # no target in any row, or a class the model has never seen: then there is no score
            name, score = _score(fitted, table)
            console.print(f"{name} on the rows that have {escape(fitted.target)}: {score:.3f}.")


@app.command()
@one_sentence
def certify(model: Model, data: Data) -> None:
    """Check a saved model against the table it was fitted to.

    The check is independent of the fit: it takes the parameters and the rows, and recomputes. A model that was altered,
    or a table that is not the one of the fit, is refused; then the exit code is 1.

    Example: `lemmata certify rents-fit/model.lemmata rents.csv`
    """
    from lemmata.association import Apriori
    from lemmata.cli.rules import certify_baskets
    from lemmata.cli.show import certificate_table
    from lemmata.core.table import read_table
    from lemmata.report.page import verdict

    fitted = _load(model, Apriori)
    baskets = isinstance(fitted, Apriori)
    certificate = certify_baskets(fitted, data) if baskets else fitted.certify(read_table(data))
    console = Console(highlight=False)
    style = "green" if certificate.holds else "bold red"
    estimator = fitted if baskets else fitted.estimator_
    console.print(f"[{style}]{escape(verdict(certificate))}[/{style}]  {escape(repr(estimator))}\n")
    console.print(certificate_table(certificate))
    if not certificate.holds:
        raise typer.Exit(1)


@app.command()
@one_sentence
def guarantee(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file of rows that the model has not seen.")],
    delta: Annotated[float, typer.Option(metavar="P", help="Probability with which the promise may fail.")] = 0.05,
    models: Annotated[
        int, typer.Option(metavar="M", min=1, help="Models that were ever scored on DATA, this one included.")
    ] = 1,
    upper: Annotated[
        float | None, typer.Option(metavar="LIMIT", help="For regressors: errors above it count as this much.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="ERROR", help="For regressors: how often is the error larger?")
    ] = None,
) -> None:
    """Bound the risk of a saved model by unseen rows.

    DATA must be rows, with their targets, that had no part in fitting or choosing the model; the rows of the fit are
    refused. Prints every bound that applies, and the best in words with what it rests on. The limits of a regressor must be
    chosen before its errors are known. A model that was fitted with costs is judged by its mean cost.

    Example: `lemmata guarantee churn-fit/model.lemmata unseen.csv`
    """
    from lemmata.cli.show import guarantee_table
    from lemmata.cli.unseen import promise_of
    from lemmata.core.table import read_table

    promise = promise_of(_load(model), read_table(data), delta, models, upper, tolerance)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(promise.sentence)}[/bold]\n")
    console.print(guarantee_table(promise.found))
    if promise.best.assumptions:
        console.print(f"\nThe sentence is by {escape(promise.best.name)} from {escape(promise.best.data)}, and rests on this:")
    for assumption in promise.best.assumptions:
        console.print(f"- {escape(assumption)}")
    for remark in promise.remarks:
        console.print(f"[yellow]{escape(remark)}[/yellow]")
    console.print(f"If any row of {escape(data.name)} had a part in fitting or choosing the model, nothing of this holds.")


@app.command()
@one_sentence
def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML file to write.")] = Path("report.html"),
) -> None:
    """Write one HTML page about a saved model.

    Scores, certificate, plots, and how each column was read; the page needs nothing else.

    Example: `lemmata report rents-fit/model.lemmata rents.csv --out page.html`
    """
    from lemmata.core.table import read_table
    from lemmata.report import report as make_report

    _check_folder(out)
    make_report(_load(model), read_table(data), out, title=f"{model.name} on {data.name}")
    Console(highlight=False, soft_wrap=True).print(f"{escape(str(out))} written.")


@app.command()
@one_sentence
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for data, model and report.")] = Path("demo"),
) -> None:
    """Run 'lemmata fit' on the rents of 600 apartments.

    The table comes with the library; it is copied beside the results.

    Example: `lemmata demo --out demo`
    """
    from lemmata.core.table import read_table

    out.mkdir(parents=True, exist_ok=True)
    data = out / "apartments.csv"
    with as_file(files("lemmata.cli") / "apartments.csv") as bundled:
        data.write_bytes(bundled.read_bytes())
    command = f"lemmata fit {shlex.quote(str(data))} --target rent --out {shlex.quote(str(out))}"
    Console(highlight=False, soft_wrap=True).print(f"[dim]$ {escape(command)}[/dim]\n")
    run_fit(read_table(data), data, "rent", None, out, folds=5, seed=0, task="auto")


@app.command()
@one_sentence
def warm() -> None:
    """Compile the kernels that common fits need.

    For container images and CI: fits every estimator to tiny tables, so that numba keeps the compiled kernels on disk and
    no later fit waits for them. `NUMBA_CACHE_DIR` says where, if it is set.

    Example: `lemmata warm`
    """
    from numba import config

    from lemmata.cli.warm import cache_line, tiny_fits

    if config.DISABLE_JIT:
        raise ValueError("NUMBA_DISABLE_JIT is set, so there is nothing to compile.")
    fits = list(tiny_fits())
    failures: dict[str, str] = {}
    with _progress(len(fits)) as tick:
        for name, tiny_fit in fits:
            try:
                tiny_fit()
            except Exception as error:  # whatever it is, the others go on
                failures.setdefault(name, _sentence(error))
            tick()
    for name, reason in failures.items():
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]{escape(f'{name} failed: {reason}')}[/red]")
    Console(highlight=False, soft_wrap=True).print(escape(cache_line()))


@app.command()
def version() -> None:
    """Print the version."""
    import lemmata

    print(f"lemmata {lemmata.__version__}")


def run_fit(
    table: Any,
    path: Path,
    target: str | None,
    names: list[str] | None,
    out: Path,
    folds: int,
    seed: int,
    task: str,
    costs: Path | None = None,
    reject_cost: float | None = None,
) -> None:
    """Do what `fit` promises with a table that has been read."""
    from lemmata.cli import compare as work
    from lemmata.cli import show
    from lemmata.cli.baskets import all_yes_or_no

    warnings.filterwarnings("ignore", work.MANY_CLASSES)  # the plan says it
    console = Console(highlight=False)
    console.print(show.describe(table, path.name))
    if target is None and all_yes_or_no(table):
        console.print(
            f"all columns are yes or no; what goes together: lemmata rules {escape(shlex.quote(str(path)))}", soft_wrap=True
        )
    chosen = work.choose_task(table, target, task)
    job = work.make_job(table, target, chosen, folds, seed, work.choose_costs(table, target, chosen, costs, reject_cost))
    estimators = work.candidates(chosen, names, seed, work.count_classes(job), work.holds_pairs(job))
    if not estimators:
        raise ValueError(f"this version of lemmata has no estimator for {chosen} yet.")
    without: list[str] = []
    if job.costs is not None:
        estimators, without = work.split_by_probabilities(estimators)
    slow: list[str] = []
    if names is None:
        estimators, slow = work.split_by_rows(estimators, job.table.n_rows)
    work.check_job(job, estimators)
    console.print(show.plan(job, table))
    if slow:
        console.print(show.too_slow(slow, job.table.n_rows))
    out.mkdir(parents=True, exist_ok=True)  # before the work, which would be lost if it cannot be
    with _progress(work.n_fits(job, estimators)) as tick:
        results = work.compare(job, estimators, tick)
    console.print()
    console.print(show.result_table(results, job))
    best = results[0]
    if best.model is None:
        raise ValueError(f"no model could be fitted; {best.name}: {best.error}")
    best.model.save(out / "model.lemmata")
    _write_report(job, results, without, path, out / "report.html")
    console.print(show.remarks(results, job, without))
    _next_steps(console, path, out)


def _write_report(job: Any, results: list[Any], without: list[str], path: Path, out: Path) -> None:
    from lemmata.cli import show
    from lemmata.cli.promise import promise
    from lemmata.report import report as make_report

    models = {result.name: result.model for result in results[:MAX_SECTIONS] if result.model is not None}
    title = f"Clusters of {path.name}" if job.target is None else f"Predicting {job.target} from {path.name}"
    make_report(
        models,
        job.table,
        out,
        title=title,
        scores=show.score_rows(results, job),
        promise=promise(results, job),
        notes=show.notes(results, job, without),
    )


def _next_steps(console: Console, path: Path, out: Path) -> None:
    model, data = shlex.quote(str(out / "model.lemmata")), shlex.quote(str(path))
    console.print(
        f"\n[bold]saved[/bold]  {escape(str(out / 'model.lemmata'))}, {escape(str(out / 'report.html'))}", soft_wrap=True
    )
    for label, command in (("next ", f"lemmata certify {model} {data}"), ("     ", f"lemmata predict {model} {data}")):
        console.print(f"[bold]{label}[/bold]  {escape(command)}", soft_wrap=True)


def _load(path: Path, *others: type) -> Any:
    """Read a model of a table, or one of these other types."""
    import lemmata
    from lemmata.core.table_model import TableModel

    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    model = lemmata.load(path)
    if not isinstance(model, (TableModel, *others)):
        name = type(model).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise ValueError(f"{path} holds {article} {name}; this command takes a model that 'lemmata fit' saved.")
    return model


def _check_folder(out: Path) -> None:
    """Refuse a file that cannot be written, before the work that would be lost."""
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent}.")


def _with_predictions(model: Any, table: Any) -> Any:
    import numpy as np

    from lemmata.core.table import Table, shown
    from lemmata.decision.costs import DecisionModel

    decides = isinstance(model, DecisionModel)
    name = f"predicted_{model.target}" if model.target else "cluster"
    new = {_free("action" if decides else name, table): model.predict(table)}
    if decides:
        costs = [float(f"{cost:.{COST_DIGITS}g}") for cost in model.expected_cost(table).tolist()]
        new[_free("expected_cost", table)] = np.array(costs)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(table)
        names = [shown(value) for value in getattr(model, "classes_", range(probabilities.shape[1]))]  # components have numbers
        new |= {_free(f"probability_{name}", table): probabilities[:, j] for j, name in enumerate(names)}
    return Table({**table, **new})


def _free(name: str, taken: Any) -> str:
    """Return the name, with underscores until it is free."""
    while name in taken:
        name += "_"
    return name


def _score(model: Any, table: Any) -> tuple[str, float]:
    from sklearn.base import is_regressor

    from lemmata.decision.costs import DecisionModel

    if isinstance(model, DecisionModel):
        return "mean cost", -model.score(table)
    return "R²" if is_regressor(model) else "accuracy", model.score(table)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on stderr while something is counted, if someone is there to see it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:  # from the system: "[Errno 13] Permission denied: 'x'"
        return f"{error.filename}: {error.strerror}."
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
