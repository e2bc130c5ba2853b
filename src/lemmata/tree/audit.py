"""One node tried again from its rows alone: every column sorted anew, every cut measured by the definition of impurity.

Nothing here is shared with the growth of a tree but the draw of columns, the order of categories and the sums under medians:
the passes are slower and simpler.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.draw import shuffle
from lemmata.tree.scan_classes import ENTROPY, ERROR, FEATHER, GINI, TIE
from lemmata.tree.scan_values import cost, enter
from lemmata.tree.split import ABSOLUTE, SQUARED


@kernel
def class_impurity(p, criterion):
    """Measure how mixed class weights are, times their sum: Gini, entropy in bits, or error."""
    total, largest, s = 0.0, 0.0, 0.0
    for k in range(len(p)):
        total += p[k]
    for k in range(len(p)):
        largest = max(largest, p[k])
    if total <= 0:
        return 0.0
    if criterion == GINI:
        for k in range(len(p)):
            s += p[k] * (total - p[k])
        return s / total
    if criterion == ENTROPY:
        for k in range(len(p)):
            s -= p[k] * np.log2(p[k] / total) if p[k] > 0 else 0.0
        return s
    return total - largest


@kernel
def describe(rows, labels, y, weight, criterion, shares):
    """Describe rows: (value, weight, impurity times weight); class weights are written to `shares`."""
    total = 0.0
    shares[:] = 0.0
    for i in rows:
        total += weight[i]
    if criterion <= ERROR:
        for i in rows:
            shares[labels[i]] += weight[i]
        return 0.0, total, class_impurity(shares, criterion)
    near, s, spread = y[rows[0]], 0.0, 0.0
    if criterion == SQUARED:
        for i in rows:
            s += weight[i] * (y[i] - near)
        value = near + s / total
        off = 0.0
        for i in rows:
            off += weight[i] * (y[i] - value)
        for i in rows:
            spread += weight[i] * (y[i] - value) ** 2
        return value, total, max(spread - off * off / total, 0.0)
    order = np.argsort(y[rows], kind="mergesort")
    seen, value = 0.0, near
    for q in range(len(order)):
        seen += weight[rows[order[q]]]
        if 2.0 * seen >= total * (1.0 - TIE):
            value = y[rows[order[q]]]
            if 2.0 * seen <= total * (1.0 + TIE) and q + 1 < len(order):
                value = 0.5 * value + 0.5 * y[rows[order[q + 1]]]
            break
    for i in rows:
        spread += weight[i] * abs(y[i] - value)
    return value, total, spread


@kernel
def left_over(x, rows, n_fixed, labels, y, weight, criterion, n_classes, least, lightest, sign, low, high, slack):
    """Find the least impurity, times weight, that a cut of rows in the order of x leaves; infinity if no cut is allowed.

    Parameters
    ----------
    x : A number for each of the rows, rising; cuts are between numbers that differ.
    n_fixed : So many rows at the front are left of every cut.
    sign, low, high, slack : Monotone constraint and bounds, which a cut must keep by more than rounding to be counted.
    """
    n, best, bounded = len(rows), np.inf, sign != 0 or low > -np.inf or high < np.inf
    left, right = np.zeros(n_classes), np.zeros(n_classes)
    after = np.zeros(n)
    if criterion == ABSOLUTE:
        order = np.argsort(y[rows], kind="mergesort")
        place, ranked = np.empty(n, dtype=np.int64), np.empty(n)
        for q in range(n):
            place[order[q]], ranked[q] = q, y[rows[order[q]]]
        one_w, one_s, total, s = np.zeros(n + 1), np.zeros(n + 1), 0.0, 0.0
        for i in range(n - 1, 0, -1):
            w, v = weight[rows[i]], y[rows[i]] - ranked[n // 2]
            enter(one_w, one_s, place[i], w, v)
            total += w
            s += w * v
            after[i - 1] = cost(one_w, one_s, ranked, ranked[n // 2], total, s)
        one_w[:] = 0.0
        one_s[:] = 0.0
    wl, sl, sr, ql, qr = 0.0, 0.0, 0.0, 0.0, 0.0
    center = 0.0
    behind = np.zeros(n)  # weight right of each cut, from behind: light rows would drown in a difference
    for i in range(n - 1, 0, -1):
        behind[i - 1] = behind[i] + weight[rows[i]]
    if criterion <= ERROR:
        for i in rows:
            right[labels[i]] += weight[i]
    elif criterion == SQUARED:
        for i in rows:
            center += weight[i] * y[i] / (behind[0] + weight[rows[0]])
        for i in rows:
            sr += weight[i] * (y[i] - center)
        for i in rows:
            qr += weight[i] * (y[i] - center) ** 2
    for i in range(n - 1):
        r = rows[i]
        w, v = weight[r], y[r] - center
        wl += w
        wr = behind[i]
        if criterion <= ERROR:
            left[labels[r]] += w
            right[labels[r]] = max(right[labels[r]] - w, 0.0)
        elif criterion == SQUARED:
            sl += w * v
            sr -= w * v
            ql += w * v * v
            qr -= w * v * v
        else:
            v = y[r] - ranked[n // 2]
            enter(one_w, one_s, place[i], w, v)
            sl += w * v
        if i + 1 < n_fixed or x[i] == x[i + 1] or i + 1 < least or n - i - 1 < least or wl < lightest or wr < lightest:
            continue
        if criterion <= ERROR:
            mixed = class_impurity(left, criterion) + class_impurity(right, criterion)
        elif criterion == SQUARED:
            mixed = ql + qr - sl * sl / wl - sr * sr / wr
        else:
            mixed = cost(one_w, one_s, ranked, ranked[n // 2], wl, sl) + after[i]
        if bounded:
            a, b = (left[1] / wl, right[1] / wr) if criterion <= ERROR else (center + sl / wl, center + sr / wr)
            share = min(wl, wr) / (wl + wr)
            off = slack / share
            if share < 2 * FEATHER or (b - a) * sign < off * abs(sign) or min(a, b) < low + off or max(a, b) > high - off:
                continue
        best = min(best, mixed)
    return best


@kernel
def column_left_over(x, rows, categorical, labels, y, weight, criterion, n_classes, least, lightest, sign, low, high, slack):
    """Find the least impurity that a split by one column leaves; `x` has its values, one for each of the rows."""
    n, missing = len(rows), 0
    for i in range(n):
        missing += np.isnan(x[i])
    best = np.inf
    turns = n_classes if categorical and criterion <= ERROR and n_classes > 2 else 1
    for turn in range(turns):
        key = x.copy()
        if categorical:  # ordered by the mean of y, or the share of a class
            most = 0
            for i in range(n):
                if not np.isnan(x[i]):
                    most = max(most, int(x[i]) + 1)
            total, s = np.zeros(most), np.zeros(most)
            for i in range(n):
                if not np.isnan(x[i]):
                    target = y[rows[i]]
                    if criterion <= ERROR:
                        target = 1.0 if labels[rows[i]] == (1 if n_classes == 2 else turn) else 0.0
                    total[int(x[i])] += weight[rows[i]]
                    s[int(x[i])] += weight[rows[i]] * target
            rank = np.argsort(np.where(total > 0, s / np.where(total > 0, total, 1.0), np.inf), kind="mergesort")
            place = np.empty(most)
            for q in range(most):
                place[rank[q]] = q
            for i in range(n):
                if not np.isnan(x[i]):
                    key[i] = place[int(x[i])]
        for i in range(n):  # missing values last, as one value
            key[i] = np.inf if np.isnan(x[i]) else key[i]
        order = np.argsort(key, kind="mergesort")
        best = min(
            best,
            left_over(
                key[order], rows[order], 0, labels, y, weight, criterion, n_classes, least, lightest, sign, low, high, slack
            ),
        )
        if 0 < missing < n:
            turned = np.concatenate((order[n - missing :], order[: n - missing]))
            placed = key[turned]
            placed[:missing] = -np.inf
            best = min(
                best,
                left_over(
                    placed,
                    rows[turned],
                    missing + 1,
                    labels,
                    y,
                    weight,
                    criterion,
                    n_classes,
                    least,
                    lightest,
                    sign,
                    low,
                    high,
                    slack,
                ),
            )
    return best


@kernel
def node_left_over(
    X, rows, categorical, labels, y, weight, criterion, n_classes, max_features, key, least, lightest, signs, low, high, slack
):
    """Find the least impurity that any split of a node leaves, of the columns that it draws."""
    d = X.shape[1]
    columns = np.arange(d)
    if max_features < d:
        shuffle(key, columns)
    best, drawn = np.inf, 0
    x = np.empty(len(rows))
    for q in range(d):
        if drawn >= max_features and best < np.inf:
            break
        j = columns[q]
        same = True
        for i in range(len(rows)):
            x[i] = X[rows[i], j]
            same = same and (x[i] == x[0] or (np.isnan(x[i]) and np.isnan(x[0])))
        if same:
            continue
        drawn += 1
        best = min(
            best,
            column_left_over(
                x, rows, categorical[j], labels, y, weight, criterion, n_classes, least, lightest, signs[j], low, high, slack
            ),
        )
    return best
