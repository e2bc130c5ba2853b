"""The command line: `lemmata fit`, `predict`, `certify`, `guarantee`, `report`, `rules`, `demo`, `warm`, `version`."""

from lemmata.cli.commands import app, main

__all__ = ["app", "main"]
