"""What the tests of the command line share: a terminal, a file, a library of few estimators."""

from typer.testing import CliRunner

import lemmata
from lemmata.cli import app
from lemmata.core.table import write_table


def run(*arguments, columns=100):
    """Run a command in a terminal of so many columns."""
    return CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).invoke(app, [str(a) for a in arguments])


def save(table, path):
    """Write a table to a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_table(table, file)
    return path


def offer(monkeypatch, *classes):
    """Make these the estimators of the library."""
    monkeypatch.setattr(lemmata, "all_estimators", lambda: [(c.__name__, c) for c in classes], raising=False)
