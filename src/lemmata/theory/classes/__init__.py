"""Hypothesis classes: which labellings of points they can produce, exactly, and how large they are."""
