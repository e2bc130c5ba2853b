"""One tree of a forest: its bag in the form that growth takes, and what growth found in the form of a `Tree`."""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.growth import CHUNK, grow
from lemmata.ensemble.growth_binary import U16, U17, U32, grow_binary
from lemmata.ensemble.growth_scan import BINS, SQUARES, Room, Table
from lemmata.tree.nodes import NOTHING, Tree
from lemmata.tree.scan_classes import GINI

MOST, MOST_COPIES = (
    2**16 - 1,
    2**15 - 1,
)  # weight of a row, and rows that it counts as, that growth for two classes has room for


class TwoClasses:
    """Grows trees for two classes on complete numerical columns."""

    def __init__(self, sample, ranks, rule):
        self.sample, self.ranks, self.rule = sample, ranks, rule
        self.is_one = sample.y.astype(np.uint64)

    def tree(self, seed):
        """Grow the tree of a seed; of its leaves nothing is kept (see `AnyKind`)."""
        rule, ranks = self.rule, self.ranks
        counts, copies, _ = self.sample.bag(seed)
        if counts.max() > MOST or copies.max() > MOST_COPIES:
            return AnyKind(self.sample, ranks, rule).tree(seed)
        feature, rank, child, rows, counted, weight, ones, score = grow_binary(
            ranks.coarse,
            ranks.fine,
            ranks.last,
            elements(counts, copies, self.is_one),
            np.uint64(seed),
            rule.n_drawn,
            rule.limit,
            rule.max_depth,
            rule.min_split,
            rule.min_leaf,
            rule.lightest,
            rule.least_gain,
        )
        share = ones / weight
        inner = feature >= 0
        left = child[inner]
        heavier = np.zeros(len(feature), dtype=bool)
        heavier[inner] = counted[left] > counted[left + 1]
        tree = Tree(
            feature=feature,
            threshold=_thresholds(feature, rank, ranks),
            children_left=child,
            missing_go_to_left=heavier,
            category_set=np.full(len(feature), -1, dtype=np.int32),
            left_categories=np.empty((0, 0), dtype=np.uint64),
            value=np.column_stack([(weight - ones) / weight, share]),
            impurity=2 * share * (1 - share),
            gain=2 * score / (weight * weight[0]),
            n_node_samples=rows.astype(np.int64),
            weighted_n_node_samples=weight,
        )
        return tree, None


@kernel
def elements(counts, copies, is_one):
    """Write the rows of a bag as words: rows that it counts as, class, weight, number of the row."""
    m = 0
    for i in range(len(counts)):
        m += counts[i] > 0
    out = np.empty(m, np.uint64)
    m = 0
    for i in range(len(counts)):
        if counts[i] > 0:
            upper = (np.uint64(copies[i]) << U17) | (is_one[i] << U16) | np.uint64(counts[i])
            out[m] = (upper << U32) | np.uint64(i)
            m += 1
    return out


def _thresholds(feature, rank, ranks):
    """Look the thresholds up: infinite where every value goes left, -2 at leaves."""
    out = np.full(len(feature), float(NOTHING))
    inner = np.flatnonzero(feature >= 0)
    column = feature[inner]
    at = ranks.starts[column] + rank[inner]
    inside = rank[inner] < ranks.starts[column + 1] - ranks.starts[column]
    out[inner] = np.where(inside, ranks.edges[np.where(inside, at, 0)] if len(ranks.edges) else np.inf, np.inf)
    return out


class AnyKind:
    """Grows trees of any kind."""

    def __init__(self, sample, ranks, rule):
        self.sample, self.ranks, self.rule = sample, ranks, rule
        y = sample.y
        self.target = y.astype(np.float64)
        if rule.criterion == SQUARES:
            self.centered = self.target - (self.target.min() / 2 + self.target.max() / 2)
        self.label = y.astype(np.int64) if rule.criterion != SQUARES else np.zeros(0, dtype=np.int64)
        self.n_sums = 3 if rule.criterion == SQUARES else sample.n_classes + 1
        # groups of one column of one node: coarse ranks, fine ranks of a small node or of one coarse rank, categories
        steps = np.diff(ranks.last.astype(np.int64), axis=1, prepend=-1)
        self.most = max(rule.limit, BINS, int(steps.max()), int(sample.categories.max(initial=0)))

    def tree(self, seed):
        """Grow the tree of a seed; return also its rows, leaf by leaf, and where those of each node begin."""
        sample, rule = self.sample, self.rule
        counts, copies, weights = sample.bag(seed)
        weight, shift = (counts, 0) if weights is None else _fixed(weights)
        moment, up = np.zeros(0, dtype=np.int64), 0
        if rule.criterion == SQUARES:
            moment, up = _fixed((counts if weights is None else weights) * self.centered, bits=61)
        rows = np.flatnonzero(counts > 0)
        table = Table(
            self.ranks.coarse,
            self.ranks.fine,
            self.ranks.last,
            sample.categories,
            self.label,
            self.target,
            weight,
            moment,
            copies,
        )
        with np.errstate(over="ignore"):  # more than any split is worth
            least = np.ldexp(rule.least_gain * float(weight[rows].sum()), 2 * (up - shift) if rule.criterion == SQUARES else 0)
        own = rule._replace(least_gain=float(least), lightest=rule.lightest * float(weight[rows].sum()))
        feature, rank, child, missing_left, chosen, sets, sums, worth, place = grow(
            rows, np.uint64(seed), table, own, self._room(len(rows))
        )
        threshold = _thresholds(feature, rank, self.ranks)
        threshold[chosen >= 0] = np.nan
        tree = Tree(
            feature=feature,
            threshold=threshold,
            children_left=child,
            missing_go_to_left=missing_left,
            category_set=chosen,
            left_categories=sets,
            value=np.zeros((len(feature), 1)),
            impurity=np.zeros(len(feature)),
            gain=worth,
            n_node_samples=place[:, 1] - place[:, 0],
            weighted_n_node_samples=np.zeros(len(feature)),
        )
        # weights near one: products of them must not overflow
        real = counts.astype(float) if weights is None else np.ldexp(weights, shift - 52)
        if rule.criterion == SQUARES:
            tree.weighted_n_node_samples = np.ldexp(sums[:, 0].astype(float), -shift)
            tree.gain = np.ldexp(worth, shift - 2 * up) / tree.weighted_n_node_samples[0]
            describe_values(rows, place, child, self.target, real, tree.value, tree.impurity)
        else:
            masses = sums[:, :-1].astype(float)
            total = masses.sum(axis=1)
            tree.weighted_n_node_samples, tree.gain = np.ldexp(total, -shift), worth / total[0]
            if weights is not None:  # in small nodes more exact than fixed point
                masses[:] = 0.0
                describe_classes(rows, place, child, self.label, real, masses)
                total = masses.sum(axis=1)
            tree.value = masses / total[:, None]
            tree.impurity = class_impurity(tree.value, rule.criterion)
        return tree, (rows, place[:, 0])

    def _room(self, m):
        d, most = self.ranks.fine.shape[1], min(self.most, max(m, BINS))
        categories = int(self.sample.categories.max(initial=0))
        return Room(
            histogram=np.zeros((CHUNK * BINS, self.n_sums), dtype=np.int64),
            groups=np.zeros((most, self.n_sums), dtype=np.int64),
            codes=np.zeros(most, dtype=np.int64),
            order=np.zeros(most, dtype=np.int64),
            means=np.zeros(most),
            missing=np.zeros(self.n_sums, dtype=np.int64),
            left=np.zeros(self.n_sums, dtype=np.int64),
            keys=np.zeros(m, dtype=np.uint64),
            own=np.zeros((m if self.rule.criterion == SQUARES else 0, 3), dtype=np.int64),
            columns=np.arange(d),
            swapped=np.zeros(d, dtype=np.int64),
            chosen=np.zeros(CHUNK, dtype=np.uint64),
            words=np.zeros(-(-categories // 64), dtype=np.uint64),
        )


def _fixed(values, bits=52):
    """Give numbers as whole multiples of 2⁻ˢ whose absolute sum fits so many bits, and s."""
    total = np.abs(values).sum()
    shift = bits - int(np.frexp(total)[1]) if total > 0 else 0
    whole = np.rint(np.ldexp(values, shift)).astype(np.int64)
    return np.where((whole == 0) & (values > 0) & (bits == 52), 1, whole), shift  # a weight is never nothing


def class_impurity(shares, criterion):
    """Return the Gini impurity or the entropy (in bits) of shares of classes.

    Examples
    --------
    >>> class_impurity(np.array([[0.5, 0.5], [1.0, 0.0]]), GINI)
    array([0.5, 0. ])
    """
    if criterion == GINI:
        return (shares * (1 - shares)).sum(axis=1)
    return -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=1)


@kernel
def leaf_sums(rows, a, b, target, weight, center):
    """Sum weights, and weighted differences from a center and their squares."""
    total = first = second = 0.0
    for i in range(a, b):
        w, r = weight[rows[i]], target[rows[i]] - center
        total += w
        first += w * r
        second += w * r * r
    return total, first, second


@kernel
def describe_classes(rows, place, child, label, weight, masses):
    """Write the weight of every class in every node: of a leaf from its rows, of others from their children."""
    for node in range(len(child) - 1, -1, -1):
        if child[node] >= 0:
            masses[node] = masses[child[node]] + masses[child[node] + 1]
            continue
        for i in range(place[node, 0], place[node, 1]):
            masses[node, label[rows[i]]] += weight[rows[i]]


@kernel
def describe_values(rows, place, child, target, weight, value, impurity):
    """Write mean and variance of every node: of a leaf from its rows, of others from their children."""
    masses = np.empty(len(child))
    for node in range(len(child) - 1, -1, -1):
        if child[node] < 0:
            a, b = place[node]
            center = target[rows[a]]
            total, first, second = leaf_sums(rows, a, b, target, weight, center)
            mean = first / total
            masses[node], value[node, 0] = total, center + mean
            impurity[node] = max(second / total - mean * mean, 0.0)
            continue
        left = child[node]
        p, q = masses[left], masses[left + 1]
        gap = value[left + 1, 0] - value[left, 0]
        masses[node] = p + q
        value[node, 0] = value[left, 0] + q / (p + q) * gap
        impurity[node] = (p * impurity[left] + q * impurity[left + 1]) / (p + q) + p * q / ((p + q) * (p + q)) * gap * gap
