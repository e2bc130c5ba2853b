"""Whether a hard margin exists: classes that the features of a kernel can separate.

Rows with the features of a kernel, from the eigenvectors of its matrix (or the rows themselves, for the linear kernel), are
separable if a linear program finds a plane; otherwise it finds weights that show that the convex hulls of the classes meet.
"""

import numpy as np

from lemmata.kernels import Linear
from lemmata.kernels.rows import fill
from lemmata.linear_model.separability import separation

RANK = 1e-12  # of the largest eigenvalue: features with less are rounding


def refuse_inseparable(kernel, rows, labels, pairs, classes):
    """Raise unless the classes of every pair are separable."""
    features = rows if isinstance(kernel, Linear) else _features(kernel, rows)
    for i, j in pairs:
        which = np.flatnonzero((labels == i) | (labels == j))
        signs = np.where(labels[which] == i, 1.0, -1.0)
        table = features[which]
        table = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=float)
        _, multipliers = separation(signs[:, None] * np.column_stack([table, np.ones(len(which))]))
        if multipliers is not None:
            shown = which[np.argsort(-multipliers, kind="stable")[: min(4, int((multipliers > 0).sum()))]]
            raise ValueError(
                "hard_margin=True needs classes that can be separated, and a linear program shows that the convex hulls of "
                f"the classes {classes[i]!s} and {classes[j]!s} meet (among others in rows {sorted(int(r) for r in shown)}); "
                "use hard_margin=False, or another kernel."
            )


def _features(kernel, rows):
    """Return features of rows whose inner products are the kernel matrix."""
    ahead = kernel.prepare(rows.astype(float))
    values, vectors = np.linalg.eigh(fill(kernel.values, ahead, ahead))
    used = values > RANK * values.max()
    return vectors[:, used] * np.sqrt(values[used])
