"""Out-of-bag predictions: of each row, the sum over the trees whose bags have left it out."""

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.kernel import kernel
from lemmata.tree.nodes import add_values


def out_of_bag(sample, trees, seeds):
    """Sum the values of the trees that have not seen a row, in the order of trees: (n, K), and how many these are."""
    seen = np.array([np.packbits(sample.bag(seed)[0] > 0) for seed in seeds])
    return Blocks.of(sample.X, np.arange(len(sample.y))).map(_unseen_block, seen, trees.descent())


def _unseen_block(X, rows, seen, descent):
    """Sum over the trees for the rows of a block."""
    value = descent.trees.nodes.value
    totals, votes = np.zeros((len(X), value.shape[1])), np.zeros(len(X), dtype=np.int64)
    chosen, leaf = np.empty(len(X), dtype=np.uint32), np.empty(len(X), dtype=np.uint32)
    for t in range(len(seen)):
        m = choose(seen[t], rows[0], votes, chosen)
        descent.find(X, chosen[:m], t, leaf)
        add_values(value, chosen[:m], leaf, totals)
    return totals, votes


@kernel
def choose(seen, first, votes, chosen):
    """List the rows of a block that a bag has left out, and count their votes; return how many they are."""
    m = 0
    for i in range(len(votes)):
        at = first + i
        if (seen[at >> 3] >> (7 - (at & 7))) & 1 == 0:  # bits of a byte from the highest down
            chosen[m] = i
            votes[i] += 1
            m += 1
    return m
