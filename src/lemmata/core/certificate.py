"""Certificates: what a checker found when it recomputed a fit from its parameters and its data.

A `Check` is one number and the limit it must not exceed. Its kind says what holding means: "proof" - a theorem's conclusion
follows; "local" - a stationary point or fixed point; "evidence" - a statistical diagnostic. Three units serve all families:

gap    (P − D) / max(|P|, √ε |P₀|), D a rigorous lower bound of the objective P, P₀ the objective of the null model.
equi   the size of the random relative perturbation of a parameter A that would leave a residual R(A) as large as the one
       found: 0.01 ‖R(A)‖ / median ‖R(A moved by 1 %) − R(A)‖. It needs no units: one percent of sabotage reads 0.01.
same   ‖A − B‖ / ‖B‖ for a parameter A and its recomputed value B.

A gap is quadratic in the error of the parameters and global; equi is linear and local; together they leave no room. Values
are computed in float64 whatever the parameters are stored in; ε is the rounding of the stored parameters.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Kind = Literal["proof", "local", "evidence"]
Floats = NDArray[np.float64]
Move = Callable[[Floats, np.random.Generator], Floats]

GAP_LIMIT = 1e-6  # 70 times the rounding √ε of a relative gap, and below what 1 % of error costs
EQUI_LIMIT = 1e-3  # a tenth of the sabotage that must be refused
SAME_LIMIT = 1e-6  # 16 times the rounding of float32
SABOTAGE = 0.01
TINY = 1e-300  # keeps 0/0 at 0 without touching any other ratio


@dataclass(frozen=True)
class Check:
    """One recomputed number, the limit it must not exceed, and what holding means.

    Examples
    --------
    >>> Check("gap", 1e-9, 1e-6, "proof", "no parameters do better by more").holds
    True
    >>> Check("gap", float("nan"), 1e-6, "proof", "no parameters do better by more").holds
    False
    """

    name: str
    value: float
    limit: float
    kind: Kind
    claim: str

    @property
    def holds(self) -> bool:
        """Whether the value is a number within the limit."""
        return bool(self.value <= self.limit)


class Certificate:
    """The checks of one fit; it holds when every check does.

    Examples
    --------
    >>> certificate = Certificate(Check("gap", 2e-12, 1e-6, "proof", "no other coefficients fit better by more"))
    >>> certificate.holds
    True
    >>> print(certificate)
    certificate holds (proof)
      check  value     limit  kind   claim
      gap    2.0e-12 ≤ 1e-06  proof  no other coefficients fit better by more
    """

    def __init__(self, *checks: Check, subject: str = "") -> None:
        self.checks = list(checks)
        self.subject = subject

    @property
    def holds(self) -> bool:
        """Whether every check holds (and there is at least one)."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def failed(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.holds]

    @property
    def kind(self) -> Kind:
        """The weakest kind among the checks that have a limit: what the certificate as a whole amounts to."""
        kinds = {check.kind for check in self.checks if check.limit < np.inf}
        return "evidence" if "evidence" in kinds else "local" if "local" in kinds else "proof"

    def __bool__(self) -> bool:
        return self.holds

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check {name!r}; there are {[check.name for check in self.checks]}")

    def _title(self) -> str:
        verdict = f"holds ({self.kind})" if self.holds else f"is refused by {', '.join(c.name for c in self.failed)}"
        return f"{self.subject + ': ' if self.subject else ''}certificate {verdict}"

    def __str__(self) -> str:
        rows = [("check", "value", "", "limit", "kind", "claim")]
        rows += [(c.name, f"{c.value:.1e}", "≤" if c.holds else ">", f"{c.limit:.0e}", c.kind, c.claim) for c in self.checks]
        w = [max(len(row[j]) for row in rows) for j in range(5)]
        lines = [f"  {a:<{w[0]}}  {b:>{w[1]}} {s:1} {c:<{w[3]}}  {d:<{w[4]}}  {e}" for a, b, s, c, d, e in rows[1:]]
        a, b, _, c, d, e = rows[0]
        head = f"  {a:<{w[0]}}  {b:<{w[1]}}   {c:<{w[3]}}  {d:<{w[4]}}  {e}"
        return "\n".join([self._title(), head, *lines])

    def __repr__(self) -> str:
        return f"<Certificate {'holds' if self.holds else 'refused'}: {', '.join(c.name for c in self.checks)}>"

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"  # notebooks align cells to the right otherwise
        rows = "".join(
            f"<tr><td {left}>{escape(c.name)}</td><td style='text-align:right'>{c.value:.1e}</td>"
            f"<td {left}>{'≤' if c.holds else '<b>&gt;</b>'} {c.limit:.0e}</td>"
            f"<td {left}>{c.kind}</td><td {left}>{escape(c.claim)}</td></tr>"
            for c in self.checks
        )
        head = "".join(f"<th {left}>{h}</th>" for h in ("check", "value", "limit", "kind", "claim"))
        mark = "✓" if self.holds else "✗"
        return (
            f"<table class='lemmata-certificate'><caption style='text-align:left'>{mark} {escape(self._title())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the certificate as plain values, ready for JSON."""
        checks = [asdict(check) | {"holds": check.holds} for check in self.checks]
        return {"subject": self.subject, "holds": self.holds, "kind": self.kind, "checks": checks}


def length(a: Floats) -> float:
    """Return the Euclidean length of all entries, at any scale."""
    largest = float(np.abs(a).max(initial=0.0))
    return largest * float(np.linalg.norm(np.ravel(a) / largest)) if 0 < largest < np.inf else largest


def gap(value: float, bound: float, null: float, claim: str, *, name: str = "gap", limit: float = GAP_LIMIT) -> Check:
    """Check an objective against a rigorous lower bound of it, relative to the objective.

    Parameters
    ----------
    null : Objective of the null model; √ε of it is the least scale on which a difference means anything.
    """
    scale = max(abs(value), np.sqrt(np.finfo(float).eps) * abs(null), TINY)
    return Check(name, float((value - bound) / scale), limit, "proof", claim)


def same(stored: ArrayLike, recomputed: ArrayLike, name: str, claim: str, *, floor: float = 0.0) -> Check:
    """Check a stored parameter against its recomputed value, relative to its norm (but at least to `floor`)."""
    a, b = np.asarray(stored, dtype=float), np.asarray(recomputed, dtype=float)
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    value = length(np.nan_to_num(a - b)) / max(length(np.nan_to_num(b)), floor, TINY)
    return Check(name, value, SAME_LIMIT, "proof", claim)


def equi(
    residual: Callable[[Floats], ArrayLike],
    parameter: ArrayLike,
    name: str,
    claim: str,
    *,
    move: Move | None = None,
    kind: Kind = "local",
) -> Check:
    """Check that a residual is no larger than a random perturbation of 0.1 % of the parameter would leave.

    Parameters
    ----------
    residual : Optimality equation as a function of the parameter: zero at the solution.
    move : How to perturb by 1 % within the parameter's constraints; default `free`. Directions come from a fixed seed.
    kind : "proof" where the objective is convex, so that stationary means optimal.
    """
    a = np.asarray(parameter, dtype=float)
    move, rng = move or free, np.random.default_rng(0)
    here = np.ravel(residual(a))
    there = [length(np.ravel(residual(move(a, rng))) - here) for _ in range(3)]  # 3: a median needs no fewer
    value = SABOTAGE * length(here) / max(float(np.median(there)), TINY)
    return Check(name, value, EQUI_LIMIT, kind, claim)


def free(a: Floats, rng: np.random.Generator, size: float = SABOTAGE) -> Floats:
    """Move an array by 1 % of its norm in a random direction."""
    return a + _scaled(rng.standard_normal(a.shape), a, size)


def symmetric(a: Floats, rng: np.random.Generator, size: float = SABOTAGE) -> Floats:
    """Move symmetric matrices (the last two axes) and keep them symmetric."""
    u = rng.standard_normal(a.shape)
    return a + _scaled(u + np.swapaxes(u, -1, -2), a, size)


def nonnegative(a: Floats, rng: np.random.Generator, size: float = SABOTAGE) -> Floats:
    """Move an array and reflect what became negative."""
    return np.abs(free(a, rng, size))


def simplex(a: Floats, rng: np.random.Generator, size: float = SABOTAGE) -> Floats:
    """Move probabilities (the last axis) and keep them summing to one."""
    u = rng.standard_normal(a.shape)
    b = np.abs(a + _scaled(u - u.mean(axis=-1, keepdims=True), a, size))
    return np.asarray(b / b.sum(axis=-1, keepdims=True))


def _scaled(u: Floats, a: Floats, size: float) -> Floats:
    return np.asarray(size * length(a) / max(length(u), TINY) * u)
