"""Arrangements of planes: all sign patterns of linear functions on finitely many rows, and the cheapest pattern.

A vector u labels the rows vᵢ of a matrix by ⟨u, vᵢ⟩ > 0. As u moves, labels change where ⟨u, vᵢ⟩ = 0, planes that cut the space
of all u into cones. Let the rows have rank r. The closure of every cone holds one of its extreme rays, a u orthogonal to r − 1
independent rows [1]; near this ray the rows off its plane keep their sides, and the rows in its plane take every labeling that
they take among themselves, in rank r − 1. So

    labelings(V) = ∪ over rays u and −u:  {sides of the rows off the plane of u} × labelings(rows in the plane of u),

a recursion that needs no general position: repeated, collinear and opposite rows come out right. There are at most C(m, r − 1)
rays, and r − 1 rows that are alone in their plane are independent and take all labelings. The cheapest labeling comes from
the same recursion with a minimum in place of the union.

[1] Björner et al., Oriented Matroids (1999), ch. 4.
"""

from fractions import Fraction
from itertools import combinations, islice
from math import comb, lcm

import numpy as np

from lemmata.theory.classes.exact import independent_columns, integers, normal_signs, orthogonal, primitive, solve
from lemmata.theory.classes.labelings import all_labelings, sorted_labelings

SIDES = 1_000_000_000  # sides of points to be looked at, rays × points: about two minutes
AT_ONCE = 2**22  # labels held in memory


def positive_parts(F, zero=True):
    """Return the distinct labelings {i : ⟨u, Fᵢ⟩ > 0} of the rows, over all u, (k, m).

    Parameters
    ----------
    F : Rows, (m, r).
    zero : Whether u with all products zero is among them.

    Examples
    --------
    >>> positive_parts(np.array([[1.0], [-2.0], [0.0]])).astype(int).tolist()
    [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    """
    m = len(F)
    _, F, V = _reduced(F)
    found = [np.zeros((int(zero), m), dtype=bool)]
    if F.shape[1]:
        inner = all_labelings(F.shape[1] - 1)
        for subsets, sides in _rays(F, V):
            sides = np.unique(sides, axis=0)
            held = sides == 0
            usual = held.sum(axis=1) == subsets.shape[1]  # no other row in the plane: those in it are independent
            both = np.concatenate([sides[usual], -sides[usual]]) > 0
            spread = np.repeat(both[:, None], len(inner), axis=1)
            where = np.argsort(~np.concatenate([held[usual]] * 2), axis=1, kind="stable")[:, None, : subsets.shape[1]]
            np.put_along_axis(spread, np.broadcast_to(where, (len(spread), *inner.shape)), inner[None], axis=2)
            found.append(sorted_labelings(spread, m))
            for side, inside in zip(sides[~usual], held[~usual], strict=True):
                parts = positive_parts(F[inside])
                rows = np.repeat(np.stack([side, -side]) > 0, len(parts), axis=0)
                rows[:, inside] = np.tile(parts, (2, 1))
                found.append(rows)
    return sorted_labelings(np.concatenate(found), m)


def fewest_errors(F, if_true, if_false, zero=True):
    """Return the least Σ (if_true over ⟨u, Fᵢ⟩ > 0) + Σ (if_false over the other rows) over all u, and a u of integers.

    Parameters
    ----------
    F : Rows, (m, r).
    if_true, if_false : What each label of a row costs, (m,).
    zero : Whether u with all products zero may be chosen.

    Examples
    --------
    >>> fewest_errors(np.array([[1.0], [2.0], [-1.0]]), np.array([0, 0, 1]), np.array([1, 1, 0]))
    (0, [1])
    """
    width = F.shape[1]
    columns, F, V = _reduced(F)
    cheapest = np.minimum(if_true, if_false)
    best, ray = (if_false.sum().item(), None) if zero or not F.shape[1] else (np.inf, None)
    inner = None
    solved = {}
    for subsets, sides in _rays(F, V):
        held = sides == 0
        above, below = (sides > 0).astype(float), (sides < 0).astype(float)
        off = np.stack([above @ if_true + below @ if_false, below @ if_true + above @ if_false])
        least = off + held @ cheapest.astype(float)
        for flip, k in zip(*np.unravel_index(np.argsort(least, axis=None, kind="stable"), least.shape), strict=True):
            if least[flip, k] >= best:  # so are all that follow
                break
            inside = np.flatnonzero(held[k])
            key = inside.tobytes()
            if key not in solved:
                solved[key] = _independent(V[inside], if_true[inside], if_false[inside]) or fewest_errors(
                    F[inside], if_true[inside], if_false[inside]
                )
            total = off[flip, k].item() + solved[key][0]
            if total < best:
                best, ray, inner = total, (subsets[k], -1 if flip else 1), solved[key][1]
    u = [0] * width
    if ray is not None:
        normal = orthogonal(V[ray[0]][None])[0] * ray[1]
        for column, value in zip(columns, _beside(V, normal, inner), strict=True):
            u[column] = value
    return (int(best) if if_true.dtype.kind == "i" else best), u


def _independent(V, if_true, if_false):
    """Give independent rows the cheaper label each; return the cost and integers u, or None if the rows are dependent."""
    chosen = independent_columns(V)
    if len(chosen) < len(V):
        return None
    wanted = np.where(if_true < if_false, 1, -1).tolist()
    u = [Fraction(0)] * V.shape[1]
    for column, value in zip(chosen, solve(V[:, chosen], wanted), strict=True):
        u[column] = value
    common = lcm(*(x.denominator for x in u))
    return np.minimum(if_true, if_false).sum().item(), [int(x * common) for x in u]


def _beside(V, normal, inner):
    """Move a ray slightly in the direction `inner`, so that only the rows in its plane change sides."""
    reach = max((abs(x) for x in V @ np.array(inner, dtype=object)), default=0) + 1
    return primitive([n * reach + x for n, x in zip(normal, inner, strict=True)])  # rows off the plane have |⟨normal, v⟩| ≥ 1


def _reduced(F):
    """Leave columns of full rank that span the others; return their positions and the rows as floats and integers."""
    V = integers(F)
    columns = independent_columns(V)
    return columns, F[:, columns], V[:, columns]


def _rays(F, V):
    """Yield in parts all sets of r − 1 independent rows and the sides of all rows of the plane through them."""
    m, r = F.shape
    if not r:
        return
    if comb(m, r - 1) * m > SIDES:
        raise ValueError(f"{m} points of rank {r} have {comb(m, r - 1)} planes to look at, too many: take fewer points.")
    subsets = combinations(range(m), r - 1)
    while True:
        part = list(islice(subsets, max(1, AT_ONCE // (m * 2 ** (r - 1)))))
        if not part:
            return
        part = np.array(part, dtype=int).reshape(len(part), r - 1)
        sides = normal_signs(F, V, part)
        independent = sides.any(axis=1)  # V has rank r, so some row is off every plane
        yield part[independent], sides[independent]
