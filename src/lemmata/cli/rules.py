"""The work of `lemmata rules`: frequent sets and rules of the baskets in a file, shown, certified and written."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as RichTable
from rich.text import Text

from lemmata.association import Apriori, Itemsets, Rules
from lemmata.association.mining import TooManySets
from lemmata.association.rules import TooManyRules, check_thresholds, write
from lemmata.cli.baskets import Found, read_baskets
from lemmata.cli.show import STYLES, plural
from lemmata.core.certificate import Certificate
from lemmata.core.table import Table, write_table
from lemmata.report.page import verdict

FORMATS = (".csv", ".parquet")
SIDES = {"antecedent": "who has", "consequent": "often has"}
MEASURES = {
    "support": "support",
    "confidence": "confidence",
    "lift": "lift",
    "count": "count",
    "adjusted_p_value": "adjusted p",
}
DIGITS = 9  # to which lifts are compared: the same share by two divisions agrees to more


def check_options(min_support: float, min_confidence: float, min_lift: float | None, alpha: float | None) -> float | int:
    """Refuse thresholds that make no sense, before anything is read; return the least support, a whole number if a count.

    Examples
    --------
    >>> check_options(0.05, 0.8, None, None), check_options(30.0, 0.8, None, None)
    (0.05, 30)
    """
    try:
        check_thresholds(min_confidence, min_lift, None, None if alpha is None else "fisher", None, alpha)
    except ValueError as error:
        raise ValueError(f"--{str(error).replace('_', '-')}") from None  # it begins with the name
    if 0 < min_support <= 1:
        return min_support
    if min_support > 1 and min_support.is_integer():
        return int(min_support)
    raise ValueError(
        f"--min-support is {min_support:g}; it is a share of the baskets, such as 0.1, or from 2 on a number of them."
    )


def check_files(data: Path, out: Path | None, save: Path | None) -> None:
    """Refuse files that cannot be written, before the work that would be lost."""
    for path in (out, save):
        if path is not None and path.exists() and data.exists() and path.samefile(data):
            raise ValueError(f"{path} is the data itself; choose another file to write to.")
        if path is not None and not path.absolute().parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}.")
    if out is not None and out.suffix not in FORMATS:
        raise ValueError(f"{out} ends in neither of {' and '.join(FORMATS)}; rules are written as CSV or Parquet.")
    if out is not None and out.suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise ImportError('writing Parquet needs PyArrow: pip install "lemmata[dask]".') from None


def fit_baskets(found: Found, min_support: float | int, max_length: int | None) -> tuple[Any, Certificate]:
    """Find the frequent sets, and certify them.

    Lists of what was read as pairs are lists already; the model then keeps the names of the columns, for those who give it
    the table.
    """
    listed = isinstance(found.baskets, list)
    model: Any = Apriori(min_support, max_length=max_length, columns=None if listed else found.columns)
    try:
        model.fit(found.baskets)
    except TooManySets as error:
        raise ValueError(_with_options(str(error))) from None
    certificate = model.certify(found.baskets)
    return model.set_params(columns=found.columns), certificate


def certify_baskets(model: Any, path: Path) -> Certificate:
    """Check a saved model against the file that it was fitted to."""
    columns = (model.columns,) if isinstance(model.columns, str) else model.columns
    found = read_baskets(path, *(columns if columns is not None and len(columns) == 2 else ()))
    model.set_params(columns=None if isinstance(found.baskets, list) else found.columns)
    return model.certify(found.baskets)


def best_rules(model: Any, min_confidence: float, min_lift: float | None, alpha: float | None) -> Rules:
    """Make the rules, tested if there is a level, in order: the greatest lift first, among equals the greatest support."""
    test = {} if alpha is None else {"test": "fisher", "correction": "bh", "alpha": alpha}
    try:
        rules = model.rules(min_confidence=min_confidence, min_lift=min_lift, **test)
    except TooManyRules:
        what_to_do = "raise --min-confidence, --min-lift or --min-support, or set --max-length"
        raise ValueError(f"there are more rules than memory has room for: {what_to_do}.") from None
    return rules.take(np.lexsort((-rules["support"], -np.round(rules["lift"], DIGITS))))


def write_rules(rules: Rules, out: Path) -> None:
    """Write rules to a CSV or a Parquet file; in CSV the items of a set have commas between them."""
    if out.suffix == ".parquet":
        write([rules], out, rules.head(0))
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        write_table(Table({name: _texts(rules, name) if name in SIDES else rules[name] for name in rules}), file)


def described(found: Found, name: str) -> Text:
    """Say which form the baskets have, and what was left out."""
    line = Text.assemble((name, "bold"), f": {found.form}.")
    for remark in found.remarks:
        line.append(f"\n{remark}")
    return line


def counted(found: Found, itemsets: Itemsets, rules: Rules) -> Text:
    """Say in one line how many baskets, items, frequent sets and rules there are."""
    n_frequent = len(itemsets.items)
    items = plural(n_frequent, "frequent item")
    if isinstance(found.baskets, list):
        n_items = len({item for basket in found.baskets for item in basket})
        items = f"{plural(n_items, 'item')}, {n_frequent:,} of them frequent"
    baskets = plural(round(itemsets.n_baskets), "basket")
    line = Text(f"{baskets}; {items}; {plural(len(itemsets), 'frequent set')}; {plural(len(rules), 'rule')}")
    if rules.adjusted_p_value is not None:
        line.append(f" after the test, of {rules.n_tests:,} pairs of sets")
    return line.append(".")


def rule_table(rules: Rules, top: int) -> RichTable:
    """Make the table of the first rules."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in SIDES.values():
        table.add_column(head, overflow="fold")
    measures = [name for name in MEASURES if name in rules.columns]
    for name in measures:
        table.add_column(MEASURES[name], justify="right", no_wrap=True)
    first = rules.head(top)
    texts, numbers = [_texts(first, side) for side in SIDES], [first[name] for name in measures]
    for *sides, row in zip(*texts, range(len(first)), strict=True):
        table.add_row(*map(Text, sides), *(_number(column[row], name) for column, name in zip(numbers, measures, strict=True)))
    return table


def what_excludes(model: Any, min_confidence: float, min_lift: float | None, alpha: float | None) -> list[str]:
    """Name the thresholds of which one alone excludes every rule; all of them if it takes several."""
    without: dict[str, tuple[float, float | None, float | None]] = {"lower --min-confidence": (0.0, min_lift, alpha)}
    if min_lift is not None:
        without["lower --min-lift"] = min_confidence, None, alpha
    if alpha is not None:
        without["raise --alpha"] = min_confidence, min_lift, None

    def has_rules(thresholds: tuple[float, float | None, float | None]) -> bool:
        try:
            return len(best_rules(model, *thresholds)) > 0
        except ValueError:  # more than memory has room for
            return True

    return [name for name, others in without.items() if has_rules(others)] or list(without)


def remarks(
    itemsets: Itemsets, rules: Rules, top: int, out: Path | None, certificate: Certificate, excluding: list[str]
) -> Text:
    """Say what there is besides the table, what to do if it is empty, and what the certificate amounts to."""
    line = Text()
    if not (itemsets.length > 1).any():
        line.append("no two items are frequent together: lower --min-support to see more.\n")
    elif not len(rules):
        line.append(f"no rule: {' or '.join(excluding)} to see more.\n")
    elif len(rules) > top:
        line.append(f"{plural(len(rules) - top, 'more rule')}{'' if out else '; --out writes all of them'}.\n")
    if not certificate.holds:
        return line.append(f"{verdict(certificate)}: do not rely on these sets and rules.", style="bold red")
    return line.append(verdict(certificate), style=STYLES[certificate.kind]).append(f": {certificate.checks[-1].claim}.")


def _texts(rules: Rules, side: str) -> np.ndarray:
    """Write the sets of one side of the rules, items in their order."""
    texts = np.empty(len(rules), dtype=object)
    texts[:] = [", ".join(map(str, sorted(items))) for items in rules[side]]
    return texts


def _number(value: float, name: str) -> str:
    if name == "count":
        return f"{value:,.0f}"
    return f"{value:.1e}" if name == "adjusted_p_value" else f"{value:.3f}"


def _with_options(message: str) -> str:
    """Call parameters by the names that they have here."""
    message = message.replace("all that memory_limit has", "all that memory has").replace(", or raise memory_limit", "")
    return message.replace("min_support=", "--min-support ").replace("et max_length", "et --max-length")
