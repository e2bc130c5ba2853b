"""What `lemmata warm` runs: every estimator on every kind of tiny table, so that each kernel is compiled once and kept."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

WARM_ROWS = 64  # of the tables of `warm`: enough for eight clusters that move more than once
WARM_ITERATIONS = 20  # a kernel that is not needed by then will not be needed later
WARM_STEPS = 2_000  # of an agent: some hundred episodes
WARM_COLUMNS = (4, 16)  # with eight clusters on either side of `FEW` of k-means, so that both of its routes are compiled


def tiny_fits() -> Iterator[tuple[str, Callable[[], None]]]:
    """List fits of every estimator to each kind of table it takes, for each kind of array has kernels of its own.

    An estimator on top of another is fitted to the plainest tables only. An agent has no table, and learns in a small world.
    """
    from sklearn.utils import get_tags
    from sklearn.utils.validation import has_fit_parameter

    from lemmata.cli.estimators import default_estimators, is_meta
    from lemmata.core.table_model import reads_pairs

    for name, estimator in default_estimators():
        takes = get_tags(estimator).input_tags
        if not (takes.one_d_array or takes.two_d_array or takes.three_d_array or takes.string):
            yield from ((name, partial(tiny_agent, estimator, layout)) for layout in ("dense", "sparse"))
            continue
        fixed = {"random_state": 0, "max_iter": WARM_ITERATIONS}
        estimator.set_params(**{key: value for key, value in fixed.items() if key in estimator.get_params()})
        layouts = ("dense", "sparse") if get_tags(estimator).input_tags.sparse else ("dense",)
        weightings = ("none", "writable", "read-only") if has_fit_parameter(estimator, "sample_weight") else ("none",)
        widths, accesses = WARM_COLUMNS, ("writable", "read-only")
        if reads_pairs(estimator):  # of a sparse matrix, each stored entry is one
            layouts, weightings = ("sparse",), ("none",)
        if is_meta(estimator):  # the estimator below it is warmed for itself: less suffices for what lies on top
            widths, layouts, weightings = WARM_COLUMNS[:1], ("dense",), ("none",)
        kinds = product(widths, ("float64", "float32"), layouts, accesses, weightings, class_counts(estimator))
        yield from ((name, partial(tiny_fit, way, *kind)) for way, kind in product(ways(estimator), list(kinds)))


def ways(estimator: Any) -> list[Any]:
    """Give the estimator as it is and, where a formula would spare complete rows EM, by EM."""
    from sklearn.base import clone

    methods = getattr(estimator, "_parameter_constraints", {}).get("method", ())
    by_em = any("em" in getattr(options, "options", ()) for options in methods)
    return [estimator, clone(estimator).set_params(method="em")] if by_em else [estimator]


def class_counts(estimator: Any) -> tuple[int, ...]:
    """Tell how many classes to try: two and several have kernels of their own; none for what is no classifier."""
    from sklearn.base import is_classifier
    from sklearn.utils import get_tags

    if not is_classifier(estimator):
        return (0,)
    return (2, 3) if get_tags(estimator).classifier_tags.multi_class else (2,)


def tiny_fit(estimator: Any, n_columns: int, dtype: str, layout: str, access: str, weighting: str, n_classes: int) -> None:
    """Fit, predict and certify on one kind of table; X, y and weights are positive, since some models ask for that."""
    import warnings

    import numpy as np
    from scipy.sparse import csr_array
    from sklearn.base import clone
    from sklearn.utils import get_tags

    rng = np.random.default_rng(0)
    raw = rng.random((WARM_ROWS, n_columns))
    X: Any = (np.floor(4 * raw) if get_tags(estimator).input_tags.categorical else raw).astype(dtype)
    y, weight = 100 * X.sum(axis=1), rng.random(WARM_ROWS)  # 100: no penalty of a default leaves nothing of it
    if n_classes:
        y = np.arange(WARM_ROWS) % n_classes
    if layout == "sparse":
        X = csr_array(np.where(raw < 0.5, X, 0).astype(dtype))
    parts = (X.data, X.indices, X.indptr) if layout == "sparse" else (X,)
    for array in (*parts, y):
        array.flags.writeable = access == "writable"
    weight.flags.writeable = weighting == "writable"
    target = (y,) if get_tags(estimator).target_tags.required else ()
    options = {} if weighting == "none" else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no interest for tables without a meaning
        model = clone(estimator).fit(X, *target, **options)
        for verb in ("predict", "predict_proba", "transform"):
            if hasattr(model, verb):
                getattr(model, verb)(X)
        if hasattr(model, "rules") and not options:  # as `lemmata rules` asks for them
            model.rules(test="fisher")
        with suppress(NotImplementedError):  # an estimator that has no certificate yet
            model.certify(X, *target, **options)


def tiny_agent(estimator: Any, layout: str) -> None:
    """Let an agent learn in a world of three states, the last of which ends an episode, and hold it against the model."""
    import warnings

    from scipy.sparse import csr_array
    from sklearn.base import clone

    from lemmata.rl import MDP

    on, back, stay = [0.0, 0.9, 0.1], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]
    moves = [[on, back], [stay, back], [stay, stay]]
    T: Any = csr_array([row for pair in moves for row in pair]) if layout == "sparse" else moves
    mdp = MDP(T, [0.0, 1.0, 2.0], 0.9, terminal=[2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no interest in a world without a meaning
        model = clone(estimator).set_params(n_steps=WARM_STEPS, random_state=0).fit(mdp)
        model.certify(mdp)


def cache_line() -> str:
    """Say how many kernels are compiled and where the cache is."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.startswith("lemmata.")]
    kernels = {member for module in modules for member in vars(module).values() if isinstance(member, Dispatcher)}
    stats = [kernel.stats for kernel in kernels if kernel.signatures]
    folders = [s.cache_path for s in stats if s.cache_path is not None]
    if len(folders) < len(stats):
        raise ValueError("the cache has no folder that can be written; name one in NUMBA_CACHE_DIR.")
    compiled, found = sum(s.cache_misses.total() for s in stats), sum(s.cache_hits.total() for s in stats)
    place = f"; the cache is {os.path.commonpath(folders)}" if folders else ""
    return f"{compiled} kernels compiled, {found} found ready{place}"
