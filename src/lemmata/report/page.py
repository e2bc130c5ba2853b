"""The page: scores, certificates, plots, how each column was read, versions. Nothing is loaded from anywhere.

Whatever comes from the data (names of columns, levels, classes, error messages) goes through `escape`, because a table may
call a column "<script>". Plots have no background of their own, so the page can turn them for dark paper.
"""

import base64
import io
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import gives_groups
from lemmata.core.table import Table, as_table, distinct, is_missing, kind_of, shown
from lemmata.core.table_encoder import describe_plan
from lemmata.core.table_model import TableModel
from lemmata.decision import Decide
from lemmata.plot import (
    BoundaryDisplay,
    CertificateDisplay,
    ClusterDisplay,
    ConfusionMatrixDisplay,
    DecisionRegionDisplay,
    PredictiveBandDisplay,
    RegressionDisplay,
    display_for,
)
from lemmata.plot.choice import lies_on_plane
from lemmata.report.decisions import Decisions
from lemmata.report.style import PLOT_STYLE, STYLE

Score = Mapping[str, str | float]

VERDICTS = {"proof": "proved", "local": "local optimum", "evidence": "evidence"}
NUMERIC = re.compile(r"[-−–]?[\d.,]*( ± [\d.,]+)?( m?s)?$")
BROAD = 6.0  # inches; a plot that is wider has its legend beside it, and a row of the page for itself
FITTED, ANY = "training rows", "rows of this report"  # what captions call the rows
LIBRARIES = ("lemmata", "numpy", "scipy", "scikit-learn", "numba")


def report(
    models: Any,
    data: Any,
    path: str | Path | None = None,
    *,
    title: str = "lemmata report",
    scores: Sequence[Score] | None = None,
    promise: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Make one self-contained HTML page about fitted models; return it, and write it if a path is given.

    Parameters
    ----------
    models : Fitted model, or several: a sequence, or a mapping from names to models.
    data : What the models were fitted to: a table for a `TableModel`, otherwise X or a pair (X, y).
    path : File to write.
    scores : Rows of the score table, one mapping from column to value for each model, if the scores come from elsewhere
        (cross-validation, say); default: each model's scores on `data`.
    promise : What the scores promise, set apart below their table.
    notes : Further sentences below the score table.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
    >>> page = report(LinearRegression().fit(X, y), (X, y), title="A line")
    >>> page.count("<h1>A line</h1>"), "<script" in page
    (1, False)
    """
    named = _named(models)
    rows = ANY if scores is None else FITTED  # scores from elsewhere stand beside pictures of the rows of the fit
    views = {name: _view(model, data) for name, model in named.items()}
    certificates = {name: _certify(view) for name, view in views.items()}
    if scores is None:
        scores = [{"model": name} | _scores(view) | _verdict_cell(certificates[name]) for name, view in views.items()]
        notes = [*notes, "Scores are on the rows of the report, which the models may have been fitted to."]
    paragraphs = [("promise", promise)] * bool(promise) + [("note", note) for note in notes]
    text = "".join(f"<p class='{kind}'>{escape(said)}</p>" for kind, said in paragraphs)
    body = _section("Scores", _table(scores) + text) + _costs_section(views)
    for name, view in views.items():
        body += _model_section(name, view, certificates[name], rows, unfolded=name == next(iter(views)))
    tables = [(model, as_table(data)) for model in named.values() if isinstance(model, TableModel)]
    body += _section("Columns", _table(list(_column_rows(*tables[0])))) if tables else ""
    page = _page(title, _lead(views, certificates), body)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def verdict(certificate: Certificate) -> str:
    """Say in a word or two what a certificate amounts to.

    Examples
    --------
    >>> from lemmata import Check
    >>> verdict(Certificate(Check("gap", 1e-9, 1e-6, "proof", "nothing fits better by more")))
    'proved'
    >>> verdict(Certificate(Check("gap", 1e-2, 1e-6, "proof", "nothing fits better by more")))
    'refused: gap'
    """
    if certificate.holds:
        return VERDICTS[certificate.kind]
    return "refused: " + ", ".join(check.name for check in certificate.failed)


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    models = list(models) if isinstance(models, list | tuple) else [models]
    named: dict[str, Any] = {}
    for model in models:
        name = type(getattr(model, "estimator_", model)).__name__
        named[name if name not in named else f"{name} ({len(named) + 1})"] = model
    return named


class View(NamedTuple):
    """A model as its estimator sees the data: X, y, and what the classes and the columns are called."""

    estimator: Any
    X: Any
    y: Any
    classes: list[str] | None
    columns: list[str] | None


def _view(model: Any, data: Any) -> View:
    if isinstance(model, TableModel):
        classes = [shown(value) for value in model.classes_] if hasattr(model, "classes_") else None
        plans = model.encoder_.plans_
        scaled = {name for name in plans if plans[name].get("width", 1.0) != 1.0}
        columns = [f"{c} (standardized)" if c in scaled else str(c) for c in model.encoder_.get_feature_names_out()]
        return View(model.estimator_, *model.encode(data), classes, columns)
    X, y = data if isinstance(data, tuple) else (data, None)
    return View(model, X, y, None, None)


def _scores(view: View) -> dict[str, str | float]:
    estimator, X, y, *_ = view
    if y is None:
        return {"clusters": len(np.unique(estimator.predict(X)))} if gives_groups(estimator) else {}
    if is_regressor(estimator):
        return {"R²": estimator.score(X, y), "RMSE": float(np.sqrt(np.mean((np.asarray(y) - estimator.predict(X)) ** 2)))}
    if not is_classifier(estimator):
        return {}
    if isinstance(estimator, Decide):
        return Decisions(estimator, X, y, view.classes).scores()
    scores = {"accuracy": estimator.score(X, y)}
    if hasattr(estimator, "predict_proba"):
        from sklearn.metrics import log_loss

        scores["log loss"] = log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)
    return scores


def _certify(view: View) -> Certificate | None:
    certificate: Certificate | None = None
    with suppress(AttributeError, NotImplementedError):  # a model from elsewhere, or one without a certificate yet
        certificate = view.estimator.certify(view.X, view.y)
    return certificate


def _verdict_cell(certificate: Certificate | None) -> dict[str, str | float]:
    return {} if certificate is None else {"certificate": verdict(certificate)}


def _lead(views: dict[str, View], certificates: dict[str, Certificate | None]) -> str:
    n_rows, n_features = np.shape(next(iter(views.values())).X)
    found = [certificate for certificate in certificates.values() if certificate is not None]
    held = sum(certificate.holds for certificate in found)
    said = (
        f"{held} of {len(found)} certificates hold"
        if len(found) > 1
        else f"the certificate {'holds' if held else 'is refused'}"
    )
    return f"{n_rows:,} rows, {n_features:,} features" + (f"; {said}." if found else ".")


def _costs_section(views: dict[str, View]) -> str:
    """Show the costs that the models act on: all act on the same, or the first ones are shown."""
    view = next((v for v in views.values() if isinstance(v.estimator, Decide) and v.y is not None), None)
    rows = [] if view is None else Decisions(view.estimator, view.X, view.y, view.classes).cost_rows()
    note = "<p class='note'>What an action costs in each class; a model takes the action of least expected cost.</p>"
    return _section("Costs", _table(rows) + note) if rows else ""


def _model_section(name: str, view: View, certificate: Certificate | None, rows: str, unfolded: bool) -> str:
    badge, body = _badge("no certificate"), ""
    if certificate is not None:
        badge, body = _badge(verdict(certificate)), f"<div class='wide'>{certificate._repr_html_()}</div>"
    if isinstance(view.estimator, Decide) and view.y is not None:
        taken = Decisions(view.estimator, view.X, view.y, view.classes).taken_rows()
        body += _table(taken) + f"<p class='note'>How often each action was taken in the {rows}.</p>"
    body += "<div class='plots'>" + "".join(_plots(name, view, certificate, rows)) + "</div>"
    title = f"<summary><h2>{escape(name)} {badge}</h2></summary>"
    return f"<details{' open' if unfolded else ''}>{title}{body}</details>"


def _plots(name: str, view: View, certificate: Certificate | None, rows: str) -> Iterator[str]:
    estimator, X, y, _, columns = view
    if is_regressor(estimator) and y is not None:
        caption = f"{name}: observed against predicted values of the {rows}, and what remains"
        yield _figure(
            lambda ax: RegressionDisplay.from_predictions(y, estimator.predict(X), residuals=True, ax=ax), (5.6, 6.2), caption
        )
        if display_for(estimator) is PredictiveBandDisplay:
            labels = {"feature_names": columns, "name": ""}
            caption = f"{name}: predictions, and the bands that should hold so many of the rows"
            yield _figure(
                lambda ax: PredictiveBandDisplay.from_estimator(estimator, X, y, ax=ax, **labels), (5.6, 4.6), caption
            )
    if gives_groups(estimator):
        display_of = display_for(estimator)
        caption = f"{name}: {'clusters' if display_of is ClusterDisplay else 'components'}"
        yield _figure(lambda ax: display_of.from_estimator(estimator, X, ax=ax, name=""), (6.4, 4.6), caption)
    if is_classifier(estimator) and y is not None:
        yield from _class_plots(name, view, rows)
    if certificate is not None:
        display = CertificateDisplay(certificate, name="")
        yield _figure(display.plot, (5.6, 1.2 + 0.36 * len(certificate.checks)), f"{name}: value and limit of each check")


def _class_plots(name: str, view: View, rows: str) -> Iterator[str]:
    """Draw regions, if rows lie on a plane, and which classes are taken for which, if what is decided is classes."""
    estimator, X, y, classes, columns = view
    labels = {"class_names": classes, "feature_names": columns, "name": ""}
    decides, on_plane = isinstance(estimator, Decide), lies_on_plane(estimator)
    if on_plane and decides:
        caption = f"{name}: the region of each action, and the {rows}"
        yield _figure(lambda ax: DecisionRegionDisplay.from_estimator(estimator, X, y, ax=ax, **labels), (6.4, 4.6), caption)
    elif on_plane:
        caption = f"{name}: the region of each class, and the {rows}; mistakes have a ring"
        yield _figure(lambda ax: BoundaryDisplay.from_estimator(estimator, X, y, ax=ax, **labels), (6.4, 4.6), caption)
    if not (on_plane and decides):
        caption = f"{name}: confusion matrix of the {rows}, which the model {'has' if rows == FITTED else 'may have'} seen"
        plain: dict[str, Any] = {"class_names": classes, "rows": rows, "name": ""}
        yield _figure(lambda ax: ConfusionMatrixDisplay.from_estimator(estimator, X, y, ax=ax, **plain), (5.6, 5), caption)


def _figure(draw: Callable[[Any], Any], size: tuple[float, float], caption: str) -> str:
    """Draw on axes of a figure of our own, since pyplot's belong to the user; a picture that fails is a sentence instead."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    try:
        with mpl.rc_context(PLOT_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied")  # names have taken all the room
            figure = Figure(figsize=size, layout="constrained")
            draw(figure.subplots())
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=140, bbox_inches="tight")  # 140: sharp on a laptop, small in the file
    except Exception as error:  # whatever it is, the rest of the page is worth having
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return f"<p class='note'>{escape(caption)}: this picture could not be drawn. {escape(reason)}</p>"
    image = base64.b64encode(buffer.getvalue()).decode()
    caption = escape(caption, quote=True)
    broad = " class='broad'" if size[0] > BROAD else ""
    return (
        f"<figure{broad}><img src='data:image/png;base64,{image}' alt='{caption}'><figcaption>{caption}</figcaption></figure>"
    )


def _column_rows(model: TableModel, table: Table) -> Iterator[Score]:
    for name, column in table.items():
        if name == model.target:
            use = "target"
        elif name in model.encoder_.plans_:
            use = describe_plan(model.encoder_.plans_[name])
        else:
            use = f"left out: {model.encoder_.dropped_.get(name, 'not in the table of the fit')}"
        missing = int(is_missing(column).sum())
        kind = kind_of(column) if missing < table.n_rows else ""
        yield {"column": name, "kind": kind, "missing": missing or "", "values": _summary(column), "used as": use}


def _summary(column: np.ndarray) -> str:
    """Say in a few words what a column holds."""
    values = distinct(column)
    if not values:
        return ""
    if kind_of(column) == "boolean":
        return f"true in {np.mean(column[~is_missing(column)].astype(bool)):.0%}"
    if kind_of(column) == "text":
        some = ", ".join(values[:4]) + (", …" if len(values) > 4 else "")  # 4: a cell stays one or two lines
        return f"{len(values):,} different: {some}"
    first, last = (shown(v) if kind_of(column) == "date" else _number(float(v)) for v in (values[0], values[-1]))
    return f"{first} to {last}"


def _table(rows: Sequence[Score]) -> str:
    heads = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_text(row.get(key, "")) for key in heads] for row in rows]
    right = [any(column) and all(map(NUMERIC.match, filter(None, column))) for column in zip(*cells, strict=True)]
    marks = [" class='number'" if numeric else "" for numeric in right]
    head = "".join(f"<th{mark}>{escape(key)}</th>" for key, mark in zip(heads, marks, strict=True))
    body = ""
    for row in cells:
        body += "<tr>"
        for key, text, mark in zip(heads, row, marks, strict=True):
            body += f"<td{mark}>{_badge(text) if key == 'certificate' and text else escape(text)}</td>"
        body += "</tr>"
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _badge(text: str) -> str:
    """Show a verdict in its color."""
    color = next((kind for kind, word in VERDICTS.items() if text == word), "none")
    color = "refused" if text.startswith(("refused", "failed")) else color
    return f"<span class='badge {color}'>{escape(text)}</span>"


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    if np.isnan(value):
        return "–"
    return (
        f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"
    )  # 4 digits: what a score bears


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _page(title: str, lead: str, body: str) -> str:
    versions = " · ".join(f"{name} {version(name)}" for name in LIBRARIES)
    made = f"{datetime.now():%Y-%m-%d %H:%M} · Python {platform.python_version()} on {platform.system()} · {versions}"
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' content='light dark'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<header><h1>{escape(title)}</h1><p>{escape(lead)}</p></header>{body}<footer>{escape(made)}</footer></main></body></html>\n"
    )
