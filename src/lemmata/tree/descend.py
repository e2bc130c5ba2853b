"""From the root to a leaf.

Two children side by side make a step of a descent one addition, child + [x > t]; a leaf is its own child behind an infinite
threshold, so that rows may wait for each other: eight go down together, and while one waits for memory the others move.
"""

import numpy as np

from lemmata.core.kernel import kernel

WORD = 64  # categories in a word of a set
U0, U1, U31, U32 = (np.uint64(k) for k in (0, 1, 31, 32))
COLUMN = np.uint64(2**31 - 1)
SIX, LOW6 = np.uint64(6), np.uint64(63)


@kernel
def step(X, row, links, cuts, node):
    """Go one step down; a leaf stays. The link of a node lies after its threshold, on the same line of memory."""
    link = links[node + node + U1]
    x = X[row, link & COLUMN]
    return (link >> U32) + (np.uint64(x > cuts[node + node]) | (np.uint64(x != x) & (link >> U31) & U1))


@kernel
def descend(X, rows, links, cuts, root, leaf):
    """Find the leaf of each of some rows."""
    n = len(rows)
    start = np.uint64(root)
    for i in range(0, n - 7, 8):
        a = b = c = d = e = f = g = h = start
        ra, rb, rc, rd = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        re, rf, rg, rh = rows[i + 4], rows[i + 5], rows[i + 6], rows[i + 7]
        while True:
            na, nb = step(X, ra, links, cuts, a), step(X, rb, links, cuts, b)
            nc, nd = step(X, rc, links, cuts, c), step(X, rd, links, cuts, d)
            ne, nf = step(X, re, links, cuts, e), step(X, rf, links, cuts, f)
            ng, nh = step(X, rg, links, cuts, g), step(X, rh, links, cuts, h)
            if na == a and nb == b and nc == c and nd == d and ne == e and nf == f and ng == g and nh == h:
                break
            a, b, c, d, e, f, g, h = na, nb, nc, nd, ne, nf, ng, nh
        leaf[i], leaf[i + 1], leaf[i + 2], leaf[i + 3] = a, b, c, d
        leaf[i + 4], leaf[i + 5], leaf[i + 6], leaf[i + 7] = e, f, g, h
    for i in range(n - n % 8, n):
        a = start
        while True:
            na = step(X, rows[i], links, cuts, a)
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
