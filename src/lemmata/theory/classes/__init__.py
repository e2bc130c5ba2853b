"""Hypothesis classes: which labelings of points they can produce, exactly, and how large they are."""
