"""From the root to a leaf.

Two children side by side make a step of a descent one addition, child + [x > t]; a leaf is its own child behind an infinite
threshold, so that rows may wait for each other: four go down together, and while one waits for memory the others move.
"""

import numpy as np

from lemmata.core.kernel import kernel

WORD = 64  # categories in a word of a set
U0, U1, U31, U32 = (np.uint64(k) for k in (0, 1, 31, 32))
COLUMN = np.uint64(2**31 - 1)
SIX, LOW6 = np.uint64(6), np.uint64(63)


@kernel
def descend(X, rows, links, cuts, root, leaf):
    """Find the leaf of each of some rows; four go down together."""
    n = len(rows)
    start = np.uint64(root)
    for i in range(0, n - 3, 4):
        a = b = c = d = start
        ra, rb, rc, rd = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        while True:
            # the link of a node lies after its threshold, on the same line of memory
            la, lb, lc, ld = links[a + a + U1], links[b + b + U1], links[c + c + U1], links[d + d + U1]
            xa, xb = X[ra, la & COLUMN], X[rb, lb & COLUMN]
            xc, xd = X[rc, lc & COLUMN], X[rd, ld & COLUMN]
            na = (la >> U32) + (np.uint64(xa > cuts[a + a]) | (np.uint64(xa != xa) & (la >> U31) & U1))
            nb = (lb >> U32) + (np.uint64(xb > cuts[b + b]) | (np.uint64(xb != xb) & (lb >> U31) & U1))
            nc = (lc >> U32) + (np.uint64(xc > cuts[c + c]) | (np.uint64(xc != xc) & (lc >> U31) & U1))
            nd = (ld >> U32) + (np.uint64(xd > cuts[d + d]) | (np.uint64(xd != xd) & (ld >> U31) & U1))
            if na == a and nb == b and nc == c and nd == d:
                break
            a, b, c, d = na, nb, nc, nd
        leaf[i], leaf[i + 1], leaf[i + 2], leaf[i + 3] = a, b, c, d
    for i in range(n - n % 4, n):
        a = start
        while True:
            la = links[a + a + U1]
            xa = X[rows[i], la & COLUMN]
            na = (la >> U32) + (np.uint64(xa > cuts[a + a]) | (np.uint64(xa != xa) & (la >> U31) & U1))
            if na == a:
                break
            a = na
        leaf[i] = a


@kernel
def descend_sets(X, rows, feature, threshold, children_left, missing_go_to_left, category_set, left_categories, leaf):
    """Find the leaf of each of some rows in a tree that may ask about categories."""
    known = WORD * left_categories.shape[1]
    for i in range(len(rows)):
        node = 0
        while children_left[node] >= 0:
            x = X[rows[i], feature[node]]
            s = category_set[node]
            if x != x or (s >= 0 and not 0 <= x < known):
                left = missing_go_to_left[node]
            elif s >= 0:
                code = np.uint64(x)
                left = (left_categories[s, code >> SIX] >> (code & LOW6)) & U1 != U0
            else:
                left = x <= threshold[node]
            node = children_left[node] + (0 if left else 1)
        leaf[i] = node


@kernel
def add_values(value, rows, leaf, out):
    """Add the values of leaves to those of their rows."""
    if value.shape[1] == 1:
        for i in range(len(rows)):
            out[rows[i], 0] += value[leaf[i], 0]
        return
    for i in range(len(rows)):
        for k in range(value.shape[1]):
            out[rows[i], k] += value[leaf[i], k]
