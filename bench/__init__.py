"""Ours and the peers side by side: `python -m bench [family ...]`."""
