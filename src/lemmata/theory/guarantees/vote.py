"""Bounds for votes: forests and bagged models by the rows that each member has not seen, boosted stumps by their margins.

A member of a bagged vote is fitted to a draw of the rows that was made without looking at them; on the rows left out it is
tested. Let z be the share of the vote that is not for the right class, on a row. The vote errs only if z ≥ ½, so its risk is at
most 2E z (Markov), and at most 4E z² (the second moment, by pairs of members on rows that neither has seen). Both means have
PAC-Bayes bounds in which the smallest set of rows left out stands for the sample size. This holds for votes by counting and
for votes by probability, as scikit-learn's forests have them, with 1 − p(y | x) as the loss of a member. The error of the whole
vote on the rows left out has no such bound: every row has a jury of its own.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import issparse
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from lemmata.core.estimator import Estimator
from lemmata.theory.bounds.growth import log_stumps
from lemmata.theory.bounds.margins import boosting_margin_bound
from lemmata.theory.bounds.pac_bayes import first_order_bound, tandem_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.class_size import stumps_of
from lemmata.theory.guarantees.sample import Sample

FIRST = "out-of-bag, twice the members"
SECOND = "out-of-bag, pairs of members"
MARGIN = "margin of the vote"
BAGGED = ("RandomForestClassifier", "ExtraTreesClassifier", "BaggingClassifier")


def vote_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    """Bound the risk of a vote by its members."""
    name, core = sample.structure.name, sample.structure.core
    if name in BAGGED:
        yield from _bagged_bounds(sample)
    elif name == "AdaBoostClassifier" and stumps_of(core) and len(sample.classes) == 2:
        yield from _boosted_bounds(sample)


def _bagged_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    obstacle = _bagged_obstacle(sample)
    if obstacle:
        yield Missing(FIRST, obstacle)
        return
    core = sample.structure.core
    drawn = core.estimators_samples_
    if len(drawn) != len(core.estimators_):
        yield Missing(FIRST, "warm_start=True has forgotten which rows the earlier members have seen")
        return
    unseen = np.ones((len(drawn), sample.n), dtype=bool)
    for member, rows in enumerate(drawn):
        unseen[member, rows] = False
    losses = _member_losses(sample, unseen)
    sizes = unseen.sum(axis=1)
    independent = "the members' rows were drawn without looking at them"
    if sizes.min() == 0:
        yield Missing(FIRST, "a member has seen every row")
        return
    mean = float((losses.sum(axis=1) / sizes).mean())
    facts = {"reference": "Germain et al. (2015), Lorenzen, Igel & Seldin (2019)"}
    data = f"{sizes.min()} or more of {sample.data} for each of {len(sizes)} members"
    yield sample.bound(
        FIRST,
        lambda delta: first_order_bound(mean, int(sizes.min()), 0.0, delta),
        independent,
        observed=mean,
        data=data,
        **facts,
    )
    together = unseen.astype(float) @ unseen.T.astype(float)
    smallest = int(together.min())
    if smallest == 0:
        yield Missing(SECOND, "two members have no row that neither has seen")
        return
    pairs = float((losses @ losses.T / together).mean())
    yield sample.bound(
        SECOND,
        lambda delta: tandem_bound(pairs, smallest, 0.0, delta),
        independent,
        observed=pairs,
        data=f"{smallest} or more of {sample.data} for each pair of members",
        reference="Masegosa, Lorenzen, Igel & Seldin (2020)",
    )


def _bagged_obstacle(sample: Sample) -> str:
    """Say why the rows left out are no test of the members, in a sentence; empty if they are one."""
    structure, core = sample.structure, sample.structure.core
    if structure.learned:
        return "a step before the vote has seen the rows that its members have not"
    if structure.settings > 1 or structure.thresholded:
        return "settings or a threshold were tuned on the rows that its members have not seen"
    if getattr(core, "class_weight", None) == "balanced":
        return 'class_weight="balanced" has seen all labels; "balanced_subsample" has not'
    if getattr(core, "_sample_weight", None) is not None:
        return "rows were drawn by weights, of rows or classes, so that those left out are not like the others"
    if not core.bootstrap and getattr(core, "max_samples", None) in (None, 1.0):
        return "every member has seen every row (bootstrap=False)"
    if core._n_samples != sample.n:
        return f"the vote was fitted to {core._n_samples} rows, and these are {sample.n}"
    if isinstance(core, Estimator):  # ours shows a member the rows of its bag and no others, but for the bins of a forest
        if structure.name.startswith("RandomForest"):
            return "its bins were cut by all rows, those that a member has not seen included; bag trees (BaggingClassifier)"
        return "a bag of a single class was drawn again, after a look at its labels" if getattr(core, "_redrawn", 0) else ""
    # scikit-learn's bagging hands all rows to members that take weights, others with weight zero; only trees never look there
    member = core.estimator_
    tree = type(member) in (DecisionTreeClassifier, ExtraTreeClassifier) and not isinstance(member.class_weight, str)
    if has_fit_parameter(member, "sample_weight") and not tree:
        return "members see the rows left out with weight zero, and may notice them; put the member in a pipeline"
    return ""


def _member_losses(sample: Sample, unseen) -> np.ndarray:
    """Give 1 − p(y | x) of each member on the rows it has not seen, zero on the others: (members, n)."""
    core, Z = sample.structure.core, sample.structure.fixed(sample.X)
    numbers = np.searchsorted(core.classes_, sample.y)
    losses = np.zeros(unseen.shape)
    columns = getattr(core, "estimators_features_", [None] * len(unseen))
    for member, (model, chosen) in enumerate(zip(core.estimators_, columns, strict=True)):
        rows = np.flatnonzero(unseen[member])
        if not len(rows):
            continue
        part = Z[rows] if issparse(Z) else np.asarray(_safe_indexing(Z, rows))
        part = part if chosen is None else part[:, chosen]
        if hasattr(model, "predict_proba"):
            p = np.zeros((len(rows), len(core.classes_)))
            p[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(part)
            losses[member, rows] = 1 - p[np.arange(len(rows)), numbers[rows]]
        else:
            losses[member, rows] = np.asarray(model.predict(part)).astype(int) != numbers[rows]
    return np.clip(losses, 0.0, 1.0)


def _boosted_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    structure, core = sample.structure, sample.structure.core
    if structure.learned or structure.thresholded:
        yield Missing(MARGIN, "a step or a threshold outside the vote was fitted to the same rows")
        return
    Z = structure.fixed(sample.X)
    Z = Z if issparse(Z) else np.asarray(Z)  # the members have seen no names of columns
    weights = core.estimator_weights_[: len(core.estimators_)]
    votes = sum(
        w * np.where(tree.predict(Z) == core.classes_[1], 1.0, -1.0) for w, tree in zip(weights, core.estimators_, strict=True)
    )
    margins = sample.signs() * votes / np.abs(weights).sum()
    d = sample.columns
    yield sample.bound(
        MARGIN,
        lambda delta: boosting_margin_bound(margins, lambda m: log_stumps(m, d), delta),
        f"the members are stumps in {d} columns; each margin of a grid has its share of delta",
        reference="Schapire, Freund, Bartlett & Lee (1998), Koltchinskii & Panchenko (2002)",
    )
