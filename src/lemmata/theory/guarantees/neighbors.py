"""A bound for nearest neighbors by leaving rows out one at a time.

One row more or less can change the vote only where it is among the k neighbors, so that the leave-one-out error cannot be far
from the risk in mean square [1]; Chebyshev's inequality makes it a bound. The errors left out are no independent trials: a
binomial bound on their number is false.

[1] Rogers & Wagner, Annals of Statistics 6 (1978).
"""

from collections.abc import Iterator

import numpy as np

from lemmata.theory.bounds.stability import nearest_neighbor_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.sample import Sample

LEFT_OUT = "leave one out"


def neighbor_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    """Bound the risk of a vote of nearest neighbors by its leave-one-out error."""
    structure, core = sample.structure, sample.structure.core
    if structure.name != "KNeighborsClassifier":
        return
    if structure.learned or structure.thresholded or structure.settings > 1:
        yield Missing(LEFT_OUT, "a step, a threshold or settings outside the vote depend on the same rows")
        return
    if core.weights != "uniform":
        yield Missing(LEFT_OUT, 'the theorem is about votes by counting, weights="uniform"')
        return
    if core.n_samples_fit_ != sample.n:
        yield Missing(LEFT_OUT, f"the model was fitted to {core.n_samples_fit_} rows, and these are {sample.n}")
        return
    if core.n_neighbors >= sample.n:
        yield Missing(LEFT_OUT, f"without a row there are no {core.n_neighbors} neighbors left among {sample.n} rows")
        return
    if hasattr(core, "leave_one_out"):  # our own, which breaks ties by distance
        if not (core.sample_weight_ == 1).all():
            yield Missing(LEFT_OUT, "the theorem is about rows without weights of their own")
            return
        left_out = core.leave_one_out()
    else:
        votes = core._y[core.kneighbors(return_distance=False)]  # without the row itself
        counts = (votes[:, :, None] == np.arange(len(core.classes_))).sum(axis=1)
        left_out = core.classes_[counts.argmax(axis=1)]
    error = float((left_out != sample.y).mean())
    yield sample.bound(
        LEFT_OUT,
        lambda delta: nearest_neighbor_bound(error, core.n_neighbors, sample.n, delta),
        "the number of neighbors and the distance were fixed before the rows were seen",
        observed=error,
        reference="Rogers & Wagner (1978), with Chebyshev's inequality",
    )
