"""What a residual proves: bounds of the best value, and of what a policy loses.

If TV − V lies between `low` and `high`, then T being monotone, and γ-Lipschitz where constants are added, gives [1, 2]

    V + low/(1 − γ)  ≤  V^π,    V*  ≤  V + high/(1 − γ)         (π greedy; else `low` is that of T_πV − V)

so the greedy policy loses at most (high − low)/(1 − γ). Where episodes may end, adding a constant is not worth γ times it in
every state: then a negative `high` and a positive `low` count as they are, undivided.

At γ = 1 there are two ways. If every policy's episodes end, let w(s) be the longest expected number of steps: w ≥ 1 + P_a w for
every action, and max w stands for 1/(1 − γ). If instead every step costs, so that with K large enough K·(chance that the
episode ends) − r ≥ c > 0 for every pair, then U = V + η(K − V) with η = high/(c + high) has TU ≤ U, and L = V − η'(K − V) with
η' = −low/(c + low) has T_πL ≥ L, for any V: so L ≤ V^π and V* ≤ U, and π ends for certain, since else it would be worth −∞.

Sums of m products round by at most m·ε of the largest value, which is added to the residual.

[1] MacQueen, J. Mathematical Analysis and Applications 14 (1966). [2] Porteus, Management Science 18 (1971).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import EQUI_LIMIT, TINY, Check
from lemmata.rl.transitions import EXACT

EPSILON = np.finfo(float).eps
LIMIT = 1e-6  # of losses and errors, relative to the largest value
CLAIM = 1.01  # what is proved again may exceed what was claimed by a hundredth: the value is another one after the last pass


class Reach(NamedTuple):
    """What turns a residual into a bound."""

    horizon: float  # 1/(1 − γ), or the longest expected number of steps; infinite where steps cost instead
    fixed: float  # what a bound is divided by if it has the opposite sign: 1 − γ, or 1 where episodes may end
    cost: float = 0.0  # c
    credit: float = 0.0  # K

    def below(self, low, value):
        """Bound V^π − V from below."""
        if low >= 0:
            return low / self.fixed
        if np.isfinite(self.horizon):
            return low * self.horizon
        return low / (self.cost + low) * self._farthest(value) if self.cost + low > 0 else -np.inf

    def above(self, high, value):
        """Bound V* − V from above."""
        if high <= 0:
            return high / self.fixed
        if np.isfinite(self.horizon):
            return high * self.horizon
        return high / (self.cost + high) * self._farthest(value)

    def factor(self, value):
        """Give the factor between a small residual and its bound."""
        return self.horizon if np.isfinite(self.horizon) else self._farthest(value) / self.cost

    def _farthest(self, value):
        return max(self.credit - float(value.min()), 0.0)


def reach_of(mdp):
    """Find what turns a residual into a bound; an error where nothing does.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> round(reach_of(MDP([[[1.0]]], [1.0], 0.75)).horizon, 6)
    4.0
    >>> round(reach_of(MDP([[[0.0, 1.0]], [[0.0, 1.0]]], [1.0, 0.0], 1.0, terminal=[1])).horizon, 6)
    1.0
    """
    if mdp.gamma < 1:
        spare = EXACT * mdp.gamma  # by which rows may miss the sum one
        return Reach(1 / max(1 - mdp.gamma - spare, EPSILON), 1.0 if mdp.episodic else 1 - mdp.gamma + spare)
    from lemmata.rl.undiscounted import undiscounted_reach

    return undiscounted_reach(mdp)


def rounding(mdp, value, change=0.0):
    """Bound the rounding of TV − V, in the value's own size: the reward of an action that counts is at most twice as large.

    Parameters
    ----------
    change : Largest entry of TV − V, where TV may be of another size.
    """
    m = mdp.longest_row + 6  # 6: discount, reward (twice), their sum, difference, γ
    return EPSILON * m * (float(np.abs(value).max()) + change)


def margin(mdp, below, above, value):
    """Give how much worse than the best an action must look to be proved worse: γ times what V* may still be off by.

    Q*(s, a) ≤ Q(s, a) + γ·above and V*(s) ≥ (TV)(s) + γ·below, by the full amounts only where no episode ends.
    """
    if mdp.episodic:
        below, above = min(below, 0.0), max(above, 0.0)
    return mdp.gamma * (above - below) + EXACT * max(above, -below, 0.0) + 2 * rounding(mdp, value)


def bracket(mdp, reach, low, high, value):
    """Bound V^π − V from below and V* − V from above, rounding included."""
    slack = rounding(mdp, value, max(abs(low), abs(high)))
    return reach.below(low - slack, value), reach.above(high + slack, value)


def limit_of(mdp, factor):
    """Give the limit of a loss or an error relative to the largest value; rounding may raise it, but never near one percent.

    Parameters
    ----------
    factor : What turns a residual into a bound.
    """
    return min(max(LIMIT, 4 * EPSILON * (mdp.longest_row + 6) * factor), EQUI_LIMIT)  # 4: planners stop at 3 roundings


def certifiable(mdp, reach, value, bound):
    """Tell whether a bound of a loss is as small as the certificate asks for."""
    return bool(bound <= limit_of(mdp, reach.factor(value)) * max(float(np.abs(value).max()), TINY))


def claimed(stored, proved, slack, name):
    """Check that a bound was not claimed to be smaller than what is proved again, but for rounding."""
    claim = f"the {name} that is proved again, as a multiple of the one that is claimed"
    return Check(name, max(proved - slack, 0.0) / max(float(stored), TINY), CLAIM, "proof", claim)
