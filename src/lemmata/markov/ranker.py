"""`MarkovRanker`: who is best, from who beat whom.

Walk from team to team, always towards the winners: from a team, one of its games is drawn, and the walk goes to, or stays
with, one of the two in proportion to the points earned in it (`games`). The share of the time that the walk spends with a
team is its rating: to beat a team that others are seen with counts for more than to beat one that nobody visits.

Doubts: were each game drawn once more with weight ε, the law π would move by ε(row change)(I − P)^#, with the group inverse
(I − P)^# = (I − P + 1π)⁻¹ − 1π [1]. With q = π/D, D the row sums of the odds, a game of i and j with a points for i moves it
by (c a − 2 q_i)(Z_i − Z_j) + 2 q_i e_i + 2 q_j e_j − 2cπ, c = q_i + q_j, Z_i the rows of the group inverse. The sum over
games of the squares of these is the variance of the ratings if games are independent: the infinitesimal jackknife [2]. Ranks
are bounded by counting whose intervals lie apart, with intervals that hold for all teams at once [3].

[1] Meyer, SIAM J. Algebraic and Discrete Methods 1 (1980). [2] Efron, The Jackknife, the Bootstrap and Other Resampling
Plans (1982).
[3] Klein, Wright & Wieczorek, J. Royal Statistical Society C 69 (2020).
"""

from importlib import import_module
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.special import ndtri
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.estimator import Estimator
from lemmata.core.threads import serial_blas
from lemmata.markov.classes import components_of
from lemmata.markov.games import chain_of, gather, look_up, number_teams, read_games, require_links, with_phantom
from lemmata.markov.model import same_table
from lemmata.markov.stationary import law_checks, stationary_laws

DOUBTED = 3000  # teams up to which doubts are worked out: the group inverse takes their cube


class Intervals(NamedTuple):
    """Between what the ratings and the ranks of the teams lie, in the order of `teams_`."""

    low: np.ndarray  # of each rating alone
    high: np.ndarray
    best: np.ndarray  # rank, 1 for the first; of all teams at once
    worst: np.ndarray


def variances(pairs, q, G, drift, share):
    """Sum the squared influences of all games on each rating; a row of G is what a unit of mass at a team does to them.

    A game of the pair (a, b) moves rating m by α(G_am − G_bm) − 2c drift_m, and by 2q_m share more if the team m plays.
    """
    i, j, games, points, squares = pairs
    c = q[i] + q[j]
    # Σ α² and Σ α over the games of each pair, α = c a − 2q_i.
    second = c * c * squares - 4 * c * q[i] * points + 4 * q[i] ** 2 * games
    first = c * points - 2 * q[i] * games
    n, teams = G.shape[1], len(q)
    # Σ second (G_i − G_j)² is a quadratic form of each column of G, with the Laplacian of the pairs.
    L = -coo_array((second, (i, j)), shape=(teams, teams)).toarray()
    L += L.T
    L[np.diag_indices(teams)] = -L.sum(axis=1)
    pull = np.bincount(i, weights=first * c, minlength=teams) - np.bincount(j, weights=first * c, minlength=teams)
    out = (G * (L @ G)).sum(axis=0) - 4 * drift * (pull @ G) + 4 * float(games @ c**2) * drift**2
    for team in (i, j):
        extra = 2 * q[team] * share
        terms = 2 * first * (G[i, team] - G[j, team]) * extra + games * (extra**2 - 4 * c * drift[team] * extra)
        out += np.bincount(team, weights=terms, minlength=n)
    return np.maximum(out, 0.0)


def standard_errors(P, totals, pairs, law, n):
    """Give the standard errors of the ratings of n teams; the law may have an imaginary team besides."""
    real = law[:n].sum()
    ratings = law[:n] / real
    with serial_blas():
        Z = np.linalg.inv(np.eye(len(law)) - P.toarray() + law) - law
        if len(law) > n:  # its mass is shared out in proportion to the ratings
            Z = (Z[:, :n] + Z[:, n:] * ratings) / real
        return np.sqrt(variances(pairs, law / totals, Z, ratings / real, 1 / real))


class MarkovRanker(Estimator):
    """Rank teams from the results of games between two of them, as the stationary law of a walk towards the winners.

    Parameters
    ----------
    prior : Games that every team draws with one imaginary team. With 0 all teams must be linked by games in which both earn
        points; a positive number links any teams, and draws the ratings of those with few games together.

    Attributes
    ----------
    teams_ : (n_teams,), the names, sorted.
    scores_ : (n_teams,), rating of each team, a share of one.
    standard_errors_ : (n_teams,), of the ratings; NaN for more than 3000 teams.
    ranking_ : (n_teams,), the names from the best team to the last.
    transition_ : CSR, chances of the walk, the imaginary team last.

    Examples
    --------
    >>> games = [("ants", "bees", 3, 1), ("bees", "crabs", 2, 2), ("crabs", "ants", 0, 1), ("bees", "ants", 2, 1)]
    >>> model = MarkovRanker().fit(games)
    >>> model.ranking_.tolist(), model.scores_.round(3).tolist()
    (['ants', 'bees', 'crabs'], [0.54, 0.376, 0.084])
    >>> model.certify(games).holds
    True
    >>> MarkovRanker().fit([("ants", "bees", 3, 1), ("crabs", "dogs", 1, 2)])
    Traceback (most recent call last):
    ValueError: The teams fall into 2 groups that never met: [ants, bees]; [crabs, dogs]. Nothing says which group is ...
    """

    _parameter_constraints = {"prior": [Interval(Real, 0, None, closed="left")]}

    def __init__(self, *, prior=0.0):
        self.prior = prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table of games is none of measurements
        tags.input_tags.string = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Rank the teams of games: rows (team, team, score, score), or (team, team) and y.

        Parameters
        ----------
        X : Rows as a frame, an array or a list of tuples; teams are named by strings or integers.
        y : For rows of two teams: two scores a game, or one result (1: the first won, ½: a tie, 0). Default: the first won.
        sample_weight : How often each game counts.
        """
        games = read_games(X, y)
        teams, i, j = number_teams(*games[:2])
        pairs = gather(i, j, *games[2:], self._weights(sample_weight, i), len(teams))
        present = np.union1d(pairs.i, pairs.j)  # a team none of whose games counts is none
        teams, pairs = teams[present], pairs._replace(i=np.searchsorted(present, pairs.i), j=np.searchsorted(present, pairs.j))
        P, totals, pairs = self._chain(pairs, len(teams))
        if self.prior == 0:
            require_links(P, teams)
        law, n = stationary_laws(P, components_of(P)), len(teams)
        law = np.asarray(law)[0]
        self.teams_, self.transition_ = teams, P
        self.scores_ = law[:n] / law[:n].sum()
        self.standard_errors_ = standard_errors(P, totals, pairs, law, n) if n <= DOUBTED else np.full(n, np.nan)
        self.ranking_ = teams[np.argsort(-self.scores_, kind="stable")]
        return self

    @staticmethod
    def _weights(sample_weight, i):
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, i, dtype=np.float64, ensure_non_negative=True)

    def _chain(self, pairs, n):
        """Make the chain of the pairs; an imaginary team is in it, but not in the pairs, since its draws have no variance."""
        P, totals = chain_of(with_phantom(pairs, n, self.prior), n + (self.prior > 0))
        return P, totals, pairs

    def intervals(self, level=0.95):
        """Give intervals of the ratings, each alone at this level, and of the ranks, for all teams at once.

        Ratings are taken to be log-normal. A team's best rank is one more than the number of teams that are better for sure.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> strength = np.array([1.0, 1.0, 9.0])
        >>> pairs = rng.permuted(np.tile(np.arange(3), (300, 1)), axis=1)[:, :2]
        >>> won = rng.random(300) < strength[pairs[:, 0]] / strength[pairs].sum(axis=1)
        >>> MarkovRanker().fit(pairs, won.astype(float)).intervals().best
        array([2, 2, 1])
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        if np.isnan(self.standard_errors_).any():
            raise ValueError(f"Standard errors are worked out for up to {DOUBTED:,} teams, and there are {len(self.teams_):,}.")
        relative = self.standard_errors_ / self.scores_
        one, joint = np.exp(ndtri((1 + level) / 2) * relative), np.exp(ndtri((1 + level ** (1 / len(relative))) / 2) * relative)
        low, high = np.sort(self.scores_ / joint), np.sort(self.scores_ * joint)
        surely_better = len(low) - np.searchsorted(low, self.scores_ * joint, side="right")
        surely_worse = np.searchsorted(high, self.scores_ / joint, side="left")
        return Intervals(self.scores_ / one, self.scores_ * one, 1 + surely_better, len(low) - surely_worse)

    def plot(self, X=None, y=None, *, ax=None):
        """Draw the ratings of the teams with their intervals; X is not looked at."""
        check_is_fitted(self)
        return import_module("lemmata.plot").RankingDisplay.from_estimator(self, ax=ax)

    def certify(self, X, y=None, sample_weight=None):
        """Gather the games again, and check that the ratings are the stationary law of their walk."""
        check_is_fitted(self)
        games, claim, n = read_games(X, y), "chances of the walk, from the games", len(self.teams_)
        try:
            i, j = (look_up(names, self.teams_) for names in games[:2])
            pairs = gather(i, j, *games[2:], self._weights(sample_weight, i), n)
            P, totals, pairs = self._chain(pairs, n)
        except ValueError as error:
            return Certificate(Check("games", np.inf, SAME_LIMIT, "proof", f"{claim}: {error}"), subject=repr(self))
        found = components_of(P)
        linked = Check("linked", len(found.recurrent) - 1.0, 0.5, "proof", "every team can be compared with every other one")
        checks = [same_table(self.transition_, P, "transition", claim), linked]
        if not linked.holds:
            return Certificate(*checks, subject=repr(self))
        law = self.scores_
        if len(totals) > n:  # the imaginary team has what flows to it
            flow = float(law @ P[:n][:, [n]].toarray().ravel()) / float(P[[n]][:, :n].sum())
            law = np.append(law, flow) / (1 + flow)
        checks += law_checks(P, found, law[None])
        if n <= DOUBTED:
            again = standard_errors(P, totals, pairs, law / law.sum(), n)
            checks.append(same(self.standard_errors_, again, "standard errors", "by the influence of every game"))
        return Certificate(*checks, self._in_order(), subject=repr(self))

    def _in_order(self):
        """Check that the ranking names every team once, from the largest rating to the smallest."""
        claim = "the ranking names all teams by falling rating"
        if not np.array_equal(np.sort(self.ranking_), self.teams_):
            return Check("ranking", np.inf, 0.0, "proof", claim)
        rises = np.diff(self.scores_[np.searchsorted(self.teams_, self.ranking_)]).max(initial=0.0)
        return Check("ranking", float(max(rises, 0.0)), 0.0, "proof", claim)
