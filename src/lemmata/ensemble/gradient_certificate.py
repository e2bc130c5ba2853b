"""The certificate of gradient boosting: every stage replayed from the rows, in full precision.

From the constant on, the derivatives of the loss are computed anew at the scores of the stages before; rows are sent down each
tree by its thresholds. Then:

constant    the first score is the best constant;
thresholds  every threshold is a border of the bins of these rows;
values      every value is Newton's step, the line search, or the quantile of its leaf;
gains       what each split lowers the model of the loss by, and the weight of each node;
strays      rows of each node; categories it has not seen go with missing values, and these, if there were none, to the child
            with the larger Σh;
splits      no split of a node by any border of any column it could see is better by more than a hundredth. The trees were grown
            on gradients in fixed point, so the best of two that are nearly equal may be missed, but not by more;
order       the leaf split next was always the one that gains most, and a leaf that was left had nothing to gain;
direction   the tree points down the gradient, ⟨tree, −g⟩ ≥ 0;
losses      the losses told are those of the scores; they never rise where a theorem says so: for second derivatives taken from
            above, and for line searches, with a learning rate up to 1 and all rows in every stage.

Nothing global is claimed: greedy stages are what the algorithm promises.
"""

from itertools import pairwise

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, length, same
from lemmata.core.config import n_threads
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.ensemble.gradient_histogram import PRECISE
from lemmata.ensemble.gradient_leaves import leaf_quantiles, newton_values, split_gains, summed_up, value_bounds
from lemmata.ensemble.gradient_losses import line_search
from lemmata.ensemble.gradient_splits import LEAST_HESSIAN
from lemmata.ensemble.gradient_stages import stage_mask, tree_seed
from lemmata.tree.bins import MISSING, learn_bins
from lemmata.tree.descend import WORD
from lemmata.tree.draw import mix, shuffle
from lemmata.tree.nodes import LEAF, NOTHING

NEAR = 0.01  # share of the best gain that fixed point may cost
SMALL = 1e-5  # of the largest gain of a tree: what is smaller may be the rounding of fixed point
CLOSE = 1e-3  # of two sums in fixed point, within which either may seem larger
ALIKE = 1e-6  # of two ratios, which may be equal in fixed point
FINE = 1e-9  # of (Σ|g|)²/Σh: gains that may be the rounding of fixed point
EXACT = 1e-9
RISE = 1e-9  # of the loss: rounding of sums


@kernel
def column_sums(codes, leaf_of, g, h, weight, sums):
    """Sum derivatives and weights over leaf and code, in full precision."""
    for i in range(len(codes)):
        a, b = np.uint64(leaf_of[i]), np.uint64(codes[i])
        sums[a, b, 0] += g[i]
        sums[a, b, 1] += h[i]
        sums[a, b, 2] += weight[i]


def best_by_column(sums, n_bins, categorical, trend, limits, bounds):
    """Return the best gain of each node by one column.

    Parameters
    ----------
    sums : (nodes, 256, 3), sums of g, h and weight over the codes.
    bounds : (nodes, 2), bounds of the values.
    """
    ridge, total = limits.l2_regularization, sums.sum(axis=1)
    parent = _worth(total[:, 0], total[:, 1] + ridge, bounds)
    best = np.full(len(sums), -np.inf)
    missing = sums[:, MISSING]
    if categorical:
        used = sums[:, np.r_[:n_bins, MISSING]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(used[..., 2] > 0, used[..., 0] / used[..., 1], np.inf)
        order = np.argsort(ratio, axis=1, kind="stable")
        used, ratio = np.take_along_axis(used, order[..., None], axis=1), np.take_along_axis(ratio, order, axis=1)
        ways = [np.cumsum(used, axis=1)]
        with np.errstate(invalid="ignore"):  # of equal ones, the order may be another in fixed point: no cut between them
            apart = np.diff(ratio, axis=1, append=np.inf) > ALIKE * (1.0 + np.abs(ratio))
    else:
        right = np.cumsum(sums[:, :n_bins], axis=1)
        ways, apart = [right, right + missing[:, None]], np.array(True)
    for left in ways:
        other = total[:, None] - left
        light = np.minimum(left[..., 2], other[..., 2]) < limits.min_samples_leaf * (1 - EXACT)
        thin = np.minimum(left[..., 1], other[..., 1]) < LEAST_HESSIAN * (1 + NEAR)
        low, high = bounds[:, :1], bounds[:, 1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = [np.clip(-s[..., 0] / (s[..., 1] + ridge), low, high) for s in (left, other)]
            score = sum(-(2 * s[..., 0] + (s[..., 1] + ridge) * v) * v for s, v in zip((left, other), values, strict=True))
            wrong = trend * (values[1] - values[0]) < 0
        score = np.where(light | thin | wrong | ~apart | np.isnan(score), -np.inf, score)
        best = np.maximum(best, 0.5 * (score.max(axis=1) - parent))
    return best


def _worth(g, h, bounds):
    """Return twice what the second-order model falls by at its best bounded value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        v = np.clip(np.where(h > 0, -g / h, 0.0), bounds[:, 0], bounds[:, 1])
    return -(2 * g + h * v) * v


def drawn_columns(tree, seed, share, d):
    """Return which columns each node could see, (nodes, columns)."""
    seen = np.ones((tree.node_count, d), bool)
    if share >= 1:
        return seen
    keys = {0: np.uint64(seed)}
    for i in range(tree.node_count):
        order = np.arange(d, dtype=np.int32)
        shuffle(keys[i], order)
        seen[i] = np.isin(np.arange(d), order[: max(1, int(share * d))])
        left = tree.children_left[i]
        if left != LEAF:
            keys[left], keys[left + 1] = (np.uint64(mix(keys[i], np.uint64(side))) for side in (1, 2))
    return seen


def best_gains(tree, codes, bins, leaf_of, g, h, weight, limits, bounds, trends, seed, own):
    """Return the best gain of each node over all columns it could see; write the weights of codes in its own to `own`."""
    d = len(bins.edges)
    seen = drawn_columns(tree, seed, limits.max_features, d)
    found = np.full((d, tree.node_count), -np.inf)

    def work(j):
        sums = np.zeros((tree.node_count, 256, 3))
        column_sums(np.ascontiguousarray(codes[:, j]), leaf_of, g, h, weight, sums)
        categorical = bins.is_categorical is not None and bool(bins.is_categorical[j])
        sums = summed_up(tree, sums)
        asked = tree.feature == j
        own[asked] = sums[asked, :, 2]
        gains = best_by_column(sums, int(bins.n_bins[j]), categorical, trends[j], limits, bounds)
        found[j] = np.where(seen[:, j], gains, -np.inf)

    run(work, range(d), min(n_threads(), d))
    return found.max(axis=0)


def missed(tree, gains, best, depth_limit, leaf_limit, scale):
    """Return the largest share of a gain that was missed: at a split, and by the order in which leaves were split.

    Parameters
    ----------
    scale : (Σ|g|)²/Σh, more than any gain can be.
    """
    inner = tree.children_left != LEAF
    floor = max(SMALL * np.abs(gains).max(initial=0.0), FINE * scale, 1e-280)
    scale = np.maximum(best, floor)
    at_split = ((best - gains) / scale)[inner].max(initial=0.0)
    made = np.zeros(tree.node_count)  # when a node came to be: when its parent was split
    made[tree.children_left[inner]] = made[tree.children_left[inner] + 1] = tree.children_left[inner]
    turn = np.where(inner, tree.children_left, np.inf)
    open_to = np.where(tree.depth < depth_limit, best, -np.inf)
    open_to = np.where(open_to > floor, open_to, -np.inf)
    late = 0.0
    for i in np.flatnonzero(open_to > 0):
        between = inner & (tree.children_left > made[i]) & (tree.children_left < turn[i])
        if between.any():
            late = max(late, (open_to[i] - gains[between].min()) / open_to[i])
        if not inner[i] and tree.n_leaves < leaf_limit:
            late = np.inf
    return at_split, late


def sound(trees, d, n_scores):
    """Tell whether the arrays make trees at all: each pair of children once, after its parent, in the order of splits."""
    nodes, roots = trees.nodes, trees.roots
    lengths = {len(v) for name, v in vars(nodes).items() if name != "left_categories"}
    if lengths != {roots[-1]} or roots[0] != 0 or np.any(np.diff(roots) < 1) or nodes.value.shape[1] != n_scores:
        return False
    if (len(roots) - 1) % n_scores or not np.array_equal(
        nodes.category_set[nodes.category_set != -1], np.arange(len(nodes.left_categories))
    ):
        return False
    for a, b in pairwise(roots):
        child, columns = nodes.children_left[a:b], nodes.feature[a:b]
        inner = child != LEAF
        if not np.array_equal(np.sort(child[inner]), np.arange(1, b - a, 2)) or np.any(child[inner] <= np.flatnonzero(inner)):
            return False
        if not np.all((columns[inner] >= 0) & (columns[inner] < d)) or np.any(columns[~inner] != NOTHING):
            return False
        blank = nodes.missing_go_to_left[a:b] | (nodes.category_set[a:b] != -1) | (nodes.threshold[a:b] != NOTHING)
        if blank[~inner].any():
            return False
    return not nodes.impurity.any()


def strays(tree, sums, column_of_node, n_bins, precise):
    """Count the nodes that send what they have not seen elsewhere than with missing values, or those to the lighter child.

    Parameters
    ----------
    sums : Sums of h over the children of all nodes.
    column_of_node : Weight of each code in the node's own column, (nodes, 256).
    precise : Whether sums that are the same are so in fixed point as well.
    """
    wrong = 0
    for i in np.flatnonzero(tree.children_left != LEAF):
        left, right = sums[tree.children_left[i]], sums[tree.children_left[i] + 1]
        here, codes = bool(tree.missing_go_to_left[i]), column_of_node[i]
        if codes[MISSING] == 0 and ((left == right and precise) or abs(left - right) > CLOSE * (left + right)):
            wrong += here != (left > right)
        if tree.category_set[i] >= 0:
            words = tree.left_categories[tree.category_set[i]]
            known = np.isin(np.arange(WORD * len(words)), tree.categories_left(i))
            used = np.zeros(max(len(known), 256))
            used[:256] = codes
            absent = (used[: len(known)] == 0) & (np.arange(len(known)) < n_bins[tree.feature[i]])
            wrong += bool(np.any(known[absent] != here)) or bool(known[n_bins[tree.feature[i]] :].any())
    return wrong


class Replay:
    """Goes through the stages again and keeps the worst that it sees."""

    def __init__(self, model, X, y, weight, watched, limits, rule, trends):
        self.model, self.y, self.limits, self.rule, self.trends = model, y, limits, rule, trends
        self.given = np.ones(len(y)) if weight is None else weight
        self.weight, self.watched = np.where(watched, 0.0, self.given), watched
        self.bins = learn_bins(X, weight, model.max_bins, model.is_categorical_)
        self.codes = self.bins.codes(X)
        dense = X.toarray() if hasattr(X, "toarray") else X
        self.leaves = model.trees_.leaves(np.ascontiguousarray(dense))
        self.F = np.repeat(np.asarray(model.init_, dtype=float)[:, None], len(y), axis=1)
        self.g, self.h = np.empty(self.F.shape), np.empty(self.F.shape)
        self.split = self.order = self.direction = self.threshold = self.strays = 0.0
        self.values, self.gains, self.sizes, self.marks = [], [], [], []

    def run(self):
        """Replay all stages."""
        self._mark()
        for t in range(len(self.model.trees_) // len(self.F)):
            mask = stage_mask(self.rule, t, len(self.y)) if self.rule.subsample < 1 else 1.0
            self.rule.loss.fill(self.y, self.F, self.weight, self.g, self.h)
            if self.rule.step == "line-search":
                self.h[:] = self.weight
            for k in range(len(self.F)):
                self._tree(t, k, mask)
            self._mark()

    def _mark(self):
        """Write down the mean losses."""
        out, w = self.watched, self.given
        held = np.nan
        if out.any():
            held = -self.rule.loss.total(self.y[out], self.F[:, out], w[out]) / w[out].sum()
        self.marks.append((-self.rule.loss.total(self.y[~out], self.F[:, ~out], w[~out]) / w[~out].sum(), held))

    def _tree(self, t, k, mask):
        i, rule = t * len(self.F) + k, self.rule
        tree, leaf_of = self.model.trees_[i], np.ascontiguousarray(self.leaves[:, i])
        g, h, weight = self.g[k] * mask, self.h[k] * mask, self.weight * mask
        columns = (g, h, weight, (weight > 0).astype(float))
        sums = summed_up(tree, np.column_stack([np.bincount(leaf_of, c, tree.node_count) for c in columns]))
        ridge, inner = self.limits.l2_regularization, tree.children_left != LEAF
        bounds = value_bounds(tree, sums, ridge, self.trends)
        values = newton_values(sums, ridge, bounds)
        if rule.loss.quantile is not None:
            exact = leaf_quantiles(rule.loss, self.y - self.F[k], weight, leaf_of, tree.node_count)
            values[~inner] = exact[~inner]
        elif rule.step == "line-search":
            values *= line_search(rule.loss, self.y, self.F, weight, values[leaf_of], k)
        stored = tree.value.copy()
        stored[:, k] -= rule.rate * values
        self.values.append((stored.ravel(), rule.rate * values))
        gains = split_gains(tree, sums, ridge, bounds)
        self.gains.append((tree.gain, gains))
        self.sizes.append((tree.weighted_n_node_samples, sums[:, 2]))
        self.strays += np.count_nonzero(tree.n_node_samples != sums[:, 3])
        seed = tree_seed(rule, t, k)
        own = np.zeros((tree.node_count, 256))
        best = best_gains(tree, self.codes, self.bins, leaf_of, g, h, weight, self.limits, bounds, self.trends, seed, own)
        whole = np.array_equal(h, np.floor(h)) or len(np.unique(h[weight > 0])) == 1  # sums are equal in fixed point, too
        self.strays += strays(tree, sums[:, 1], own, self.bins.n_bins, len(self.y) <= PRECISE and whole)
        scale = np.abs(g).sum() ** 2 / max(h.sum(), 1e-280)
        split, order = missed(tree, gains, best, self.limits.max_depth, self.limits.max_leaf_nodes, scale)
        self.split, self.order = max(self.split, split), max(self.order, order)
        down = -g @ tree.value[leaf_of, k]
        self.direction = max(self.direction, -down / max(np.abs(g).sum() * np.abs(tree.value).max(initial=0.0), 1e-280))
        for node in np.flatnonzero(inner & (tree.category_set < 0) & np.isfinite(tree.threshold)):
            edges, cut = self.bins.edges[tree.feature[node]], tree.threshold[node]
            near = np.abs(edges - cut).min(initial=np.inf)
            self.threshold = max(self.threshold, near / max(abs(cut), 1e-280))
        self.F[k] += tree.value[leaf_of, k]


def certificate(model, X, y, weight, watched, limits, rule, trends):
    """Replay a fit and say what was found."""
    if not sound(model.trees_, X.shape[1], rule.loss.n_scores) or np.shape(model.init_) != (rule.loss.n_scores,):
        return Certificate(Check("trees", np.inf, 0.0, "proof", "the arrays make trees"), subject=repr(model))
    replay = Replay(model, X, y, weight, watched, limits, rule, trends)
    replay.run()
    used = replay.weight > 0
    constant = rule.loss.best_constant(y[used], replay.weight[used])
    spread = float(np.sqrt(np.finfo(float).eps)) * (np.std(y) + 1.0)
    marks = np.array(replay.marks)
    errors, values = (np.concatenate(parts) for parts in zip(*replay.values, strict=True))
    rises = np.diff(-marks[:, 0]).max(initial=0.0) / max(np.abs(marks[:, 0]).max(), 1e-280)
    sure = (rule.loss.flat or rule.step == "line-search") and rule.rate <= 1 and rule.subsample == 1 and not np.any(trends)
    told = np.r_[model.train_score_, model.validation_score_]
    recomputed = np.r_[marks[:, 0], marks[:, 1] if watched.any() else ()]
    checks = [
        same(model.init_, constant, "constant", "the first score is the best constant", floor=spread),
        Check("thresholds", replay.threshold, EXACT, "proof", "every threshold is a border of the bins of these rows"),
        Check("values", length(errors) / max(length(values), 1e-280), SAME_LIMIT, "proof", VALUES[rule.step]),
        same(*(np.concatenate(parts) for parts in zip(*replay.gains, strict=True)), "gains", "what every split gains"),
        same(*(np.concatenate(parts) for parts in zip(*replay.sizes, strict=True)), "sizes", "the weight of every node"),
        Check(
            "strays", float(replay.strays), 0.0, "proof", "what a node has not seen goes with missing values, these with most"
        ),
        Check("splits", replay.split, NEAR, "proof", "no border of any column gains more by more than this share"),
        Check("order", replay.order, NEAR, "proof", "the leaf that gains most is split next, and none is left that gains"),
        Check("direction", replay.direction, EXACT, "proof", "every tree points down the gradient"),
        same(told, recomputed, "losses", "the losses told are those of the scores"),
        Check("descent", rises, RISE if sure else np.inf, "proof" if sure else "evidence", "the training loss never rises"),
    ]
    return Certificate(*checks, subject=repr(model))


VALUES = {
    "newton": "every value is Newton's step over its rows, or their quantile",
    "line-search": "every value is the mean gradient of its rows times the best multiple, or their quantile",
}
