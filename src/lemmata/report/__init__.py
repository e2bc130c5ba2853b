"""One self-contained HTML page about models and the data they were fitted to."""

from lemmata.report.page import report

__all__ = ["report"]
