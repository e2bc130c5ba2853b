"""The certificate of a forest: bags drawn again, numbers recomputed, better splits looked for.

From the seeds follow the bags, from bags and thresholds the rows of every node, and from these all that the trees hold.
Whether a split is the best of its candidates is found by enumeration (`forest_search`). A greedy tree is no best tree, which
would be hard to find (Hyafil & Rivest, 1976): the claim is that of the algorithm.
"""

import numpy as np

from lemmata.core import config
from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.ensemble.forest_search import search
from lemmata.ensemble.forest_trees import class_impurity
from lemmata.ensemble.ranks import learn_ranks
from lemmata.tree.nodes import LEAF, NOTHING

GAIN_LIMIT = 1e-9  # of the root's weight times impurity: sums of n terms round by n·ε, far less
WORK = 2_000_000  # rows × columns × trees that are searched in about a second
FEWEST = 3  # trees that are searched in any case


def forest_certificate(forest, sample, rule):
    """Certify a fitted forest on the sample that it was fitted to."""
    trees, seeds = forest.trees_, forest.seeds_
    malformed = 1.0 if len(seeds) != len(trees) else float(sum(not _well_formed(tree, sample) for tree in trees))
    checks = [Check("structure", malformed, 0.0, "proof", "every node but the root is the child of one other")]
    if malformed:
        return Certificate(*checks, subject=type(forest).__name__)
    ranks = learn_ranks(sample.X, sample.odds, sample.categories > 0)
    searched = _chosen_trees(len(trees), sample, rule)
    found, excess, descent = [None] * len(trees), {}, trees.descent()

    def work(t):
        found[t] = _recomputed(trees[t], sample, rule, seeds[t], _leaves(descent, sample.X, t))
        if t in searched:
            excess[t] = search(trees[t], sample, ranks, rule, int(seeds[t]))

    run(work, range(len(trees)), min(config.n_threads(), len(trees)))
    claims = {
        "n_node_samples": "rows of every node follow from the bags, drawn again from the seeds",
        "weighted_n_node_samples": "so does their weight",
        "value": "every value is the mean of the rows of its node",
        "impurity": "so is every impurity",
        "gain": "every gain is what the split takes off the impurity",
    }
    # what is zero may have rounded: 1e-20 is (√n ε)² for all tables, 1e-9 of a share of classes means nothing
    least = 1e-9 if sample.n_classes else 1e-20 * float(np.abs(sample.y).max()) ** 2
    for name, claim in claims.items():
        recomputed = np.concatenate([numbers[name] for numbers, _, _ in found])
        floor = least * np.sqrt(len(recomputed)) if name in ("impurity", "gain") else 0.0
        checks.append(same(getattr(trees.nodes, name), recomputed, name, claim, floor=floor))
    if forest._leaf_rows is not None:
        kept = forest._leaf_rows
        nodes = [slice(a, b) for a, b in zip(trees.roots[:-1], trees.roots[1:], strict=True)]
        strange = sum(kept.misplaced(t, trees[t], nodes[t], counts, leaf) for t, (_, counts, leaf) in enumerate(found))
        strange += not np.array_equal(kept.target, sample.y)
        checks.append(
            Check("leaves", float(strange), 0.0, "proof", "every row of a bag is kept with the leaf that it comes to")
        )
    worst, wrong = max(e for e, _ in excess.values()), float(sum(w for _, w in excess.values()))
    which = f"all {len(trees)}" if len(searched) == len(trees) else f"{len(searched)} of {len(trees)}"
    checks += [
        Check(
            "better splits",
            worst,
            GAIN_LIMIT,
            "proof",
            f"no value of a small node, and no border of 255 groups of a larger one, gains more, in {which} trees",
        ),
        Check(
            "rules", wrong, 0.0, "proof", f"columns, thresholds, missing values, leaves of {which} trees are as the rules say"
        ),
    ]
    return Certificate(*checks, *_out_of_bag_checks(forest, sample, found), subject=type(forest).__name__)


def _leaves(descent, X, t):
    """Find the leaf of each row in a tree, numbered within it."""
    leaf = np.empty(len(X), dtype=np.uint32)
    descent.find(X, np.arange(len(X), dtype=np.uint32), t, leaf)
    return leaf.astype(np.int64) - descent.trees.roots[t]


def _well_formed(tree, sample):
    """Tell whether a tree is one: children after their parents, each once; columns, sets and leaves as they should be."""
    inner, n, d = tree.children_left != LEAF, tree.node_count, sample.X.shape[1]
    left = tree.children_left[inner]
    if not np.array_equal(np.sort(np.concatenate([left, left + 1])), np.arange(1, n)):
        return False
    if (left <= np.flatnonzero(inner)).any() or not np.array_equal(inner, tree.feature != NOTHING):
        return False
    if ((tree.feature[inner] < 0) | (tree.feature[inner] >= d)).any() or (tree.threshold[~inner] != NOTHING).any():
        return False
    categorical = np.zeros(n, dtype=bool)
    categorical[inner] = sample.categories[tree.feature[inner]] > 0
    if not np.array_equal(categorical, tree.category_set >= 0) or tree.missing_go_to_left[~inner].any():
        return False
    return not len(tree.left_categories) or bool((tree.category_set < len(tree.left_categories)).all())


def _chosen_trees(n_trees, sample, rule):
    """Choose the trees whose nodes are searched: all, or as many as take about a second."""
    n = min(n_trees, max(FEWEST, WORK // (len(sample.y) * rule.n_drawn)))
    return set(np.random.default_rng(0).choice(n_trees, n, replace=False).tolist())


def _recomputed(tree, sample, rule, seed, leaf):
    """Recompute what a tree holds from the leaves of the rows of its bag; return also the bag and all rows' leaves."""
    counts, _, weights = sample.bag(seed)
    weight = counts.astype(float) if weights is None else weights
    inside, n, k = counts > 0, tree.node_count, max(sample.n_classes, 1)
    at, w, y = leaf[inside], weight[inside], sample.y[inside]
    if sample.n_classes:
        center, shares = 0.0, np.bincount(at * k + y, w, n * k).reshape(n, k)
    else:
        center = np.average(y, weights=w)
        r = y - center
        shares = np.column_stack([np.bincount(at, w, n), np.bincount(at, w * r, n), np.bincount(at, w * r**2, n)])
    sums = np.column_stack([np.bincount(at, minlength=n), shares])
    climb(tree.children_left, sums)
    rows, masses = sums[:, 0], sums[:, 1:]
    total = masses.sum(axis=1) if sample.n_classes else masses[:, 0].copy()
    safe = np.where(total > 0, total, 1.0)
    if sample.n_classes:
        value = masses / safe[:, None]
        impurity = class_impurity(value, rule.criterion)
    else:
        mean = masses[:, 1] / safe
        value, impurity = (center + mean)[:, None], np.maximum(masses[:, 2] / safe - mean**2, 0.0)
    gain, inner = np.zeros(n), np.flatnonzero(tree.children_left != LEAF)
    left = tree.children_left[inner]
    lost = total[left] * impurity[left] + total[left + 1] * impurity[left + 1]
    gain[inner] = (total[inner] * impurity[inner] - lost) / total[0]
    numbers = {"n_node_samples": rows, "weighted_n_node_samples": total, "value": value, "impurity": impurity, "gain": gain}
    return numbers, counts, leaf


@kernel
def climb(child, sums):
    """Add the sums of children to their parents, which stand before them."""
    for node in range(len(child) - 1, -1, -1):
        if child[node] >= 0:
            sums[node] = sums[child[node]] + sums[child[node] + 1]


def _out_of_bag_checks(forest, sample, found):
    """Recompute out-of-bag predictions and their score from the stored values of the trees."""
    name = "oob_decision_function_" if sample.n_classes else "oob_prediction_"
    if not hasattr(forest, name):
        return []
    totals, votes = 0.0, np.zeros(len(sample.y))
    for tree, (_, counts, leaf) in zip(forest.trees_, found, strict=True):
        unseen = counts == 0
        totals = totals + np.where(unseen[:, None], tree.value[leaf], 0.0)
        votes += unseen
    with np.errstate(invalid="ignore"):
        means = totals / np.where(votes > 0, votes, np.nan)[:, None]
    means = means if sample.n_classes else means[:, 0]
    claim = "out-of-bag predictions are means over the trees that have not seen a row"
    checks = [same(getattr(forest, name), means, "out-of-bag predictions", claim)]
    if hasattr(forest, "oob_residuals_"):
        floor = float(np.linalg.norm(sample.y))
        checks.append(
            same(forest.oob_residuals_, sample.y - means, "out-of-bag residuals", "what y was above", floor=floor * 1e-3)
        )
    score = forest._score_out_of_bag(means, sample.y)
    return [*checks, same(forest.oob_score_, score, "out-of-bag score", "the score of these predictions")]
