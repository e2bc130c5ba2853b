"""Games between two teams, gathered by pairs, and the chain that walks towards the winners.

For every game in which i and j score s_i and s_j, team i earns a_i = [1 for a win, ½ for a tie, 0] + s_i / (s_i + s_j) of the
two points of the game, and a_j = 2 − a_i. A supporter of either team then goes over to, or stays with, i with odds a_i and j
with odds a_j: a_i is added to M_ji and M_ii, a_j to M_ij and M_jj. So a row of M sums to twice the games of its team,
whatever the results. All that the chain needs of a pair is the number of its games and the points earned; the squares of the
points serve the doubts.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lemmata.core.kernel import kernel
from lemmata.markov.classes import components_of
from lemmata.markov.counting import listed, numbers_of

GROUPS = 4  # groups of teams that a message lists
NARROW = 4  # numbers of teams that span no more than this times the games are looked up directly


class Pairs(NamedTuple):
    """What is known of each pair of teams, i < j, that met."""

    i: np.ndarray
    j: np.ndarray
    games: np.ndarray
    points: np.ndarray  # Σ a_i
    squares: np.ndarray  # Σ a_i²


def columns_of(X):
    """Give the columns of a table of games, in their own types."""
    if hasattr(X, "columns"):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        return [frame[name].to_numpy() for name in frame.columns]
    if isinstance(X, list | tuple):
        if len({len(row) for row in X}) > 1:
            raise ValueError("Games must be rows of equal length: two teams, and two scores unless these are given as y.")
        return [np.array(column) for column in zip(*X, strict=True)]
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"Games must be a table of rows (team, team, score, score) or (team, team); got {array.ndim} axes.")
    return list(array.T)


def read_games(X, y):
    """Read games: two arrays of team names, and two of scores.

    Examples
    --------
    >>> read_games([("a", "b"), ("b", "c")], [1.0, 0.5])[2:]
    (array([1. , 0.5]), array([0. , 0.5]))
    """
    columns = columns_of(X)
    if len(columns) not in (2, 4) or (len(columns) == 4 and y is not None) or not len(columns[0]):
        raise ValueError(
            f"Games are rows (team, team, score, score), or (team, team) with the scores as y; got {len(columns)} columns"
            f" and {len(columns[0]) if columns else 0} rows" + (" beside a y." if y is not None else ".")
        )
    first, second = columns[:2]
    if len(columns) == 4:
        one, other = (np.asarray(column, dtype=float) for column in columns[2:])
    elif y is None:
        one, other = np.ones(len(first)), np.zeros(len(first))
    else:
        scores = np.asarray(y, dtype=float)
        if scores.shape not in ((len(first),), (len(first), 2)):
            raise ValueError(
                f"y must hold one result or two scores for each of {len(first)} games; got the shape {scores.shape}."
            )
        one, other = scores.T if scores.ndim == 2 else (scores, 1 - scores)
    played = ~(np.isnan(one) | np.isnan(other))
    if (one[played] < 0).any() or (other[played] < 0).any():
        told = "a result is from 0 (lost) to 1 (won)" if y is not None and np.ndim(y) == 1 else "scores are at least 0"
        raise ValueError(f"A game has a negative score, and {told}.")
    if not (np.isfinite(one[played]).all() and np.isfinite(other[played]).all()):
        raise ValueError("A game has an infinite score.")
    return np.asarray(first), np.asarray(second), one, other


def plain_names(names):
    """Give names as a list of strings, or as an array of integers."""
    if names.dtype.kind in "iu":
        return names
    if names.dtype.kind == "f" and np.isfinite(names).all() and (names == np.floor(names)).all():
        return names.astype(np.int64)
    listed_names = names.tolist()
    if all(isinstance(name, str) for name in listed_names):
        return listed_names
    if all(isinstance(name, int) and not isinstance(name, bool) for name in listed_names):
        return np.array(listed_names)
    raise ValueError("Teams are named by strings or by integers, and all of them alike.")


def number_teams(first, second):
    """Number the teams by their sorted names.

    Examples
    --------
    >>> number_teams(np.array(["b", "a"]), np.array(["c", "b"]))
    (array(['a', 'b', 'c'], dtype='<U1'), array([1, 0]), array([2, 1]))
    """
    first, second = plain_names(first), plain_names(second)
    if isinstance(first, list) != isinstance(second, list):
        raise ValueError("Teams are named by strings or by integers, and all of them alike.")
    if isinstance(first, list):
        found = {}
        numbers = np.array(
            [found.setdefault(name, len(found)) for name in [*first, *second]]
        )  # far quicker than sorting strings
        names = np.array(list(found))
        order = np.argsort(names)
        teams, numbers = names[order], np.argsort(order)[numbers]
    else:
        both = np.concatenate([first, second])
        low, high = int(both.min()), int(both.max())
        if high - low > NARROW * len(both):
            teams, numbers = np.unique(both, return_inverse=True)
        else:  # a place for every number between is quicker than to sort
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[both - low] = True
            teams, numbers = np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[both - low]
    return teams, numbers[: len(first)], numbers[len(first) :]


def look_up(names, teams):
    """Find the numbers of teams that are known; another one is an error."""
    names = plain_names(names)
    if not isinstance(names, list):
        return numbers_of(names, teams)
    known = {str(team): number for number, team in enumerate(teams)}
    strange = next((name for name in names if name not in known), None)
    if strange is not None:
        raise ValueError(f"{strange} is none of the teams of the fit.")
    return np.array([known[name] for name in names])


@kernel
def gathered(i, j, earned, weight, n):
    """Sum games by pairs: sorted by the smaller number, then added up in a row of all teams."""
    start = np.zeros(n + 1, np.int64)
    for g in range(len(i)):
        start[min(i[g], j[g]) + 1] += 1
    for a in range(n):
        start[a + 1] += start[a]
    place, order = start[:-1].copy(), np.empty(len(i), np.int64)
    for g in range(len(i)):
        a = min(i[g], j[g])
        order[place[a]] = g
        place[a] += 1
    one, other, sums = np.empty(len(i), np.int64), np.empty(len(i), np.int64), np.empty((3, len(i)))
    where, found = np.full(n, -1, np.int64), 0
    for a in range(n):
        begin = found
        for t in range(start[a], start[a + 1]):
            g = order[t]
            b, points = max(i[g], j[g]), earned[g] if i[g] == a else 2 - earned[g]
            if where[b] < begin:
                where[b], one[found], other[found] = found, a, b
                sums[:, found] = 0.0
                found += 1
            p = where[b]
            sums[0, p] += weight[g]
            sums[1, p] += weight[g] * points
            sums[2, p] += weight[g] * points * points
    return one[:found].copy(), other[:found].copy(), sums[0, :found].copy(), sums[1, :found].copy(), sums[2, :found].copy()


def gather(i, j, one, other, weight, n):
    """Gather games by pairs; those without a score or a weight are left out.

    Examples
    --------
    >>> pairs = gather(np.array([0, 1]), np.array([1, 0]), np.array([3.0, 2.0]), np.array([1.0, 2.0]), None, 2)
    >>> pairs.games, pairs.points  # 1 + 3/4 and, of the tie, 1/2 + 1/2
    (array([2.]), array([2.75]))
    """
    weight = np.ones(len(i)) if weight is None else weight
    keep = ~(np.isnan(one) | np.isnan(other)) & (weight > 0)
    i, j, one, other, weight = (a[keep] for a in (i, j, one, other, weight))
    if not len(i):
        raise ValueError("There is no game with scores and a positive weight.")
    if (i == j).any():
        raise ValueError("A team plays against itself in one of the games.")
    total = one + other
    earned = np.where(one > other, 1.0, np.where(one == other, 0.5, 0.0))
    earned = earned + np.divide(one, total, out=np.full(len(i), 0.5), where=total > 0)
    return Pairs(*gathered(i.astype(np.int64), j.astype(np.int64), earned, weight, n))


def with_phantom(pairs, n, prior):
    """Let every team draw `prior` games with one more team, number n."""
    if prior == 0:
        return pairs
    teams, ones = np.arange(n), np.full(n, float(prior))
    return Pairs(*(np.concatenate(two) for two in zip(pairs, (teams, np.full(n, n), ones, ones, ones), strict=True)))


def chain_of(pairs, n):
    """Make the chain: odds, divided by twice the games of each team."""
    lost = 2 * pairs.games - pairs.points
    rows = np.concatenate([pairs.j, pairs.i, pairs.i, pairs.j])
    columns = np.concatenate([pairs.i, pairs.j, pairs.i, pairs.j])
    M = csr_array((np.concatenate([pairs.points, lost, pairs.points, lost]), (rows, columns)), shape=(n, n))
    M.eliminate_zeros()
    totals = M.sum(axis=1)
    M.data /= np.repeat(totals, np.diff(M.indptr))
    return M, totals


def require_links(P, teams):
    """Raise, with the groups named, unless every team can be compared with every other one."""
    n_parts, part = connected_components(P, directed=False)
    if n_parts > 1:
        groups = sorted((teams[part == number] for number in range(n_parts)), key=len, reverse=True)
        named = "; ".join(f"[{listed(group)}]" for group in groups[:GROUPS]) + ("; …" if n_parts > GROUPS else "")
        raise ValueError(
            f"The teams fall into {n_parts} groups that never met: {named}. Nothing says which group is better: rank each"
            " alone, or take prior > 0, which lets every team draw so many games with one imaginary team."
        )
    found = components_of(P)
    if len(found.recurrent) > 1:
        closed = np.flatnonzero(found.recurrent)
        top = teams[found.label == closed[0]]
        others = f", and so on for {len(closed) - 1:,} more groups" if len(closed) > 1 else ""
        raise ValueError(
            f"[{listed(top)}] never lost a point to the others{others}: the walk would never come back from there, and all"
            " the other teams would have the same rating, zero. Take prior > 0, which lets every team draw so many games with"
            " one imaginary team."
        )
