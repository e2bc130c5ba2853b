"""How many rows are enough: sample sizes, and the accuracy and confidence that a sample size buys.

For n rows each theorem bounds the probability of a failure by a formula that falls with n and with ε; setting it to δ and
solving for n, ε or δ gives `sample_size`, `epsilon` and `delta`, which are inverses of each other. The failures:

deviation   some h of the class has |L_S(h) − L_D(h)| > ε: the sample is not representative (uniform convergence);
excess      the hypothesis of least empirical risk is worse than the best of the class by more than ε. It is never worse by
            more than twice the largest deviation, so this is a deviation of more than ε/2;
realizable  some h of the class has no error on the sample and a true risk above ε, where the best has none.

                 class of N hypotheses                 class of VC dimension d, growth function π
    deviation    2N exp(−2nε²)                         4 π(2n) exp(−nε²/8)  [1]
    excess       2N exp(−nε²/2)                        4 π(2n) exp(−nε²/32)
    realizable   N (1 − ε)ⁿ ≤ N exp(−nε)               2 π(2n) 2^(−nε/2)  for n ≥ 8/ε  [2]

with π(m) ≤ Σ_{i≤d} C(m, i) ≤ (em/d)^d for m ≥ d (Sauer); the last, and exp(−nε), unless `tight`. So n = (2/ε²) ln(2N/δ) rows
are enough for an excess of ε; half as many, which one reads at times, are not. The excess needs |H| deviations upward and a
single one downward, that of the best h: `tight` has N + 1 in place of 2N. `sample_complexity` gives the orders of magnitude
in d, ε and δ that are known from both sides: they tell how the sizes grow, not what they are.

[1] Vapnik & Chervonenkis, Theory Probab. Appl. 16 (1971). [2] Blumer, Ehrenfeucht, Haussler & Warmuth, J. ACM 36 (1989).
"""

from math import ceil, exp, inf, log, log1p, sqrt
from numbers import Integral
from typing import NamedTuple

from lemmata.theory.bounds.growth import log_sauer
from lemmata.theory.bounds.tails import check_count, check_delta


class _Theorem(NamedTuple):
    """A bound (amount × growth) · exp(−rate(ε) n) on the probability of a failure."""

    hypotheses: int | None
    vc_dim: int | None
    realizable: bool
    goal: str
    tight: bool

    def log_amount(self, n):
        """Logarithm of what multiplies the exponential."""
        if self.vc_dim is None:
            if self.realizable:
                return log(self.hypotheses)
            return log(self.hypotheses + 1 if self.tight and self.goal == "excess" else 2 * self.hypotheses)
        return log(2 if self.realizable else 4) + self.log_growth(2 * n)

    def log_growth(self, m):
        """Logarithm of the bound of the growth function."""
        if self.tight or m <= self.vc_dim or not self.vc_dim:
            return log_sauer(m, self.vc_dim)
        return self.vc_dim * (1 + log(m / self.vc_dim))

    def rate(self, epsilon):
        """Decrease of the logarithm with each row."""
        if self.realizable:
            if self.vc_dim is not None:
                return epsilon / 2 * log(2)
            return epsilon if not self.tight else -log1p(-epsilon) if epsilon < 1 else inf
        epsilon = epsilon / 2 if self.goal == "excess" else epsilon
        return 2 * epsilon**2 if self.vc_dim is None else epsilon**2 / 8

    def epsilon(self, n, log_delta):
        """The ε at which the bound is δ."""
        budget = (self.log_amount(n) - log_delta) / n
        if self.realizable:
            if self.vc_dim is not None:
                return max(2 * budget / log(2), 8 / n)
            return 1 - exp(-budget) if self.tight else budget
        deviation = sqrt(budget / 2) if self.vc_dim is None else sqrt(8 * budget)
        return 2 * deviation if self.goal == "excess" else deviation

    def log_failure(self, n, epsilon):
        """Logarithm of the bound."""
        if self.realizable and self.vc_dim is not None and n * epsilon < 8:
            return 0.0
        rate = self.rate(epsilon)
        return -inf if rate == inf else self.log_amount(n) - n * rate


def _theorem(hypotheses, vc_dim, realizable, goal, tight):
    if (hypotheses is None) == (vc_dim is None):
        raise ValueError("Say how rich the class is: give either hypotheses, their number, or vc_dim.")
    if goal not in ("excess", "deviation"):
        raise ValueError(f"goal must be 'excess' (of the risk of ERM) or 'deviation' (of any risk), not {goal!r}.")
    if vc_dim is not None:
        if vc_dim == inf:
            raise ValueError("A class of infinite VC dimension cannot be learned: no number of rows is enough.")
        return _Theorem(None, check_count(vc_dim, "vc_dim", 0), realizable, goal, tight)
    if not isinstance(hypotheses, Integral) or hypotheses < 1:
        raise ValueError(f"hypotheses must be the number of hypotheses, a whole number of at least 1, not {hypotheses!r}.")
    return _Theorem(int(hypotheses), None, realizable, goal, tight)


def _check_epsilon(value):
    if not 0 < value <= 1:
        raise ValueError(f"epsilon is a difference of risks and must be above 0 and at most 1, not {value!r}.")


def sample_size(epsilon, delta, *, hypotheses=None, vc_dim=None, realizable=False, goal="excess", tight=False):
    """Return how many rows are enough for accuracy ε with probability 1 − δ.

    Parameters
    ----------
    epsilon, delta : Accuracy, and probability of failure.
    hypotheses : Number of hypotheses of a finite class.
    vc_dim : VC dimension of the class, instead.
    realizable : Whether some hypothesis of the class has no risk; the goal is then a risk of at most ε.
    goal : "excess" of the risk of ERM over the best of the class, or "deviation" of any risk from its estimate.
    tight : Whether to solve the sharper form of the bound.

    Examples
    --------
    >>> sample_size(0.1, 0.05, hypotheses=1000, realizable=True)
    100
    >>> sample_size(0.1, 0.05, hypotheses=1000), sample_size(0.1, 0.05, hypotheses=1000, goal="deviation")
    (2120, 530)
    >>> sample_size(0.1, 0.05, vc_dim=3, goal="deviation")
    29646
    """
    _check_epsilon(epsilon)
    check_delta(delta)
    theorem = _theorem(hypotheses, vc_dim, realizable, goal, tight)
    log_delta, rate = log(delta), theorem.rate(epsilon)
    if theorem.vc_dim is None:
        guess = ceil((theorem.log_amount(1) - log_delta) / rate)
    else:
        # Beyond this the growth function gains less with each row than the exponential loses, so that the bound falls;
        # up to here it exceeds one.
        guess = max(1, ceil(theorem.vc_dim / rate + theorem.vc_dim / 2))
    low, high = max(guess - 2, 0) if theorem.vc_dim is None else guess - 1, max(guess, 1)
    while theorem.log_failure(high, epsilon) > log_delta:
        low, high = high, 2 * high
    while high - low > 1:  # the bound at `high` is small enough, at `low` it is not, or `low` is no sample
        middle = (low + high) // 2
        if middle and theorem.log_failure(middle, epsilon) <= log_delta:
            high = middle
        else:
            low = middle
    return high


def epsilon(n, delta, *, hypotheses=None, vc_dim=None, realizable=False, goal="excess", tight=False):
    """Return the accuracy that n rows reach with probability 1 − δ; one if the bound says nothing.

    Parameters
    ----------
    n : Rows. The others as for `sample_size`.

    Examples
    --------
    >>> epsilon(2120, 0.05, hypotheses=1000), epsilon(29646, 0.05, vc_dim=3, goal="deviation")
    (0.09998, 0.099999)
    >>> epsilon(10, 0.05, vc_dim=3)
    1.0
    """
    n = check_count(n, "n")
    check_delta(delta)
    return min(1.0, _theorem(hypotheses, vc_dim, realizable, goal, tight).epsilon(n, log(delta)))


def delta(n, epsilon, *, hypotheses=None, vc_dim=None, realizable=False, goal="excess", tight=False):
    """Return the probability at most with which n rows fail to reach accuracy ε; one if the bound says nothing.

    Parameters
    ----------
    n : Rows. The others as for `sample_size`.

    Examples
    --------
    >>> delta(2120, 0.1, hypotheses=1000), delta(100, 0.1, hypotheses=1000, realizable=True, tight=True)
    (0.0498, 0.0266)
    """
    n = check_count(n, "n")
    _check_epsilon(epsilon)
    return exp(min(0.0, _theorem(hypotheses, vc_dim, realizable, goal, tight).log_failure(n, epsilon)))


def uc_to_agnostic(size):
    """Turn the sample size of uniform convergence into one of agnostic learning: m(ε, δ) = m_UC(ε/2, δ).

    Parameters
    ----------
    size : Function of (ε, δ): rows enough for every risk of the class to be estimated within ε.

    Examples
    --------
    >>> uniform = lambda epsilon, delta: sample_size(epsilon, delta, hypotheses=1000, goal="deviation")
    >>> uniform(0.1, 0.05), uc_to_agnostic(uniform)(0.1, 0.05)
    (530, 2120)
    """
    return lambda epsilon, delta: size(epsilon / 2, delta)


class Orders(NamedTuple):
    """Orders of magnitude between which a sample size lies, up to constants that nobody specifies."""

    lower: float
    upper: float


def sample_complexity(d, epsilon, delta, regime="agnostic", C1=1.0, C2=1.0):
    """Return the orders of the least sample size of a class of VC dimension d: how it grows, not what it is.

    Agnostic, uniform convergence included: Θ((d + ln 1/δ)/ε²). Realizable: between orders (d + ln 1/δ)/ε and
    (d ln 1/ε + ln 1/δ)/ε. For sizes that are enough use `sample_size`.

    Parameters
    ----------
    d : VC dimension.
    regime : "agnostic" or "realizable".
    C1, C2 : Constants of the lower and of the upper order.

    Examples
    --------
    >>> sample_complexity(3, 0.1, 0.05)
    Orders(lower=599.573, upper=599.573)
    >>> sample_complexity(3, 0.1, 0.05, "realizable")
    Orders(lower=59.957, upper=99.034)
    """
    _check_epsilon(epsilon)
    check_delta(delta)
    d = check_count(d, "d", 0)
    if regime not in ("agnostic", "realizable"):
        raise ValueError(f"regime must be 'agnostic' or 'realizable', not {regime!r}.")
    if regime == "agnostic":
        order = (d + log(1 / delta)) / epsilon**2
        return Orders(C1 * order, C2 * order)
    return Orders(C1 * (d + log(1 / delta)) / epsilon, C2 * (d * log(1 / epsilon) + log(1 / delta)) / epsilon)
