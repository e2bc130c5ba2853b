"""What a guarantee says: bounds on the risk, each with its assumptions, and the best of them at a price.

Every bound of a list holds with probability 1 − δ by itself; the smallest of several does not, because a minimum is wrong as
soon as one of them is. `Guarantee.best` pays for the choice: the portfolio is settled by the kind of model and the number of
rows, never by the values, each member is computed again at its share of δ, and the shares add up to δ (a union bound).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from math import inf
from typing import Any, Literal, NamedTuple

Kind = Literal["high-probability", "expectation"]
Target = Literal["model", "gibbs"]


@dataclass(frozen=True)
class Bound:
    """An upper bound on a risk, and what it rests on.

    Attributes
    ----------
    name : Which bound it is.
    value : The bound.
    delta : Probability, over samples, that the risk is larger.
    observed : What was counted on the data: the mean loss from which the bound starts.
    kind : "high-probability", or "expectation" for a statement about the mean over samples only.
    target : Whose risk: of the "model", or of a "gibbs" classifier that draws a new model for every row.
    risk : "zero-one", or in words what else is bounded.
    data : The rows it was computed from.
    assumptions : What has to be true and cannot be checked here, a sentence each.
    reference : Where the theorem stands.
    limit : The largest loss there can be: a bound that is not below it says nothing.
    trivial : Risk of the best constant prediction on the same rows.
    formula : The bound as a function of δ.

    Examples
    --------
    >>> bound = Bound("Clopper-Pearson", 0.102, 0.05, observed=0.05, formula=lambda delta: 0.102, trivial=0.08)
    >>> bound.vacuous, bound.uninformative
    (False, True)
    """

    name: str
    value: float
    delta: float
    observed: float
    formula: Callable[[float], float] = field(repr=False, compare=False)
    kind: Kind = "high-probability"
    target: Target = "model"
    risk: str = "zero-one"
    data: str = ""
    assumptions: tuple[str, ...] = ()
    reference: str = ""
    limit: float = 1.0
    trivial: float = 1.0

    def at(self, delta: float) -> "Bound":
        """Give the same bound at another δ."""
        return replace(self, delta=delta, value=float(self.formula(delta)))

    @property
    def vacuous(self) -> bool:
        """Whether it allows every loss there can be."""
        return not self.value < self.limit

    @property
    def uninformative(self) -> bool:
        """Whether it allows as much as the best constant prediction loses."""
        return not self.value < min(self.trivial, self.limit)

    @property
    def remark(self) -> str:
        """What is to be known before the value is quoted, in a word or two; empty if nothing is."""
        if self.vacuous:
            return "vacuous"
        words = ["no better than a constant"] if self.uninformative else []
        words += ["of the random classifier"] * (self.target == "gibbs")
        words += ["in expectation only"] * (self.kind == "expectation")
        words += [self.risk] * (self.risk != "zero-one")
        return ", ".join(words)

    def __str__(self) -> str:
        head = f"{self.name}: ≤ {self.value:.4g} with probability ≥ {1 - self.delta:.4g}, observed {self.observed:.4g}"
        told = [f"{head} on {self.data}" if self.data else head]
        told += [f"  {self.remark}"] * bool(self.remark)
        return "\n".join([*told, *(f"  - {sentence}" for sentence in self.assumptions)])

    def to_dict(self) -> dict[str, Any]:
        """Give the bound as plain values, for a file or a web page; what has no limit has None there."""
        plain = {key: None if value == inf else value for key, value in asdict(replace(self, formula=float)).items()}
        del plain["formula"]
        return plain | {"vacuous": self.vacuous, "uninformative": self.uninformative}


def _shown(value: float) -> str:
    """Give a number to four places, or to six digits if it is large."""
    if value == inf:
        return "∞"
    return f"{value:.4f}" if value < 100 else f"{value:.6g}"


class Missing(NamedTuple):
    """A bound that does not apply, and why; `settled` tells whether that was clear before the rows were seen."""

    name: str
    reason: str
    settled: bool = True


@dataclass(frozen=True)
class Guarantee:
    """Every bound that applies to a model, the reasons why others do not, and the best bound at the price of choosing.

    Attributes
    ----------
    bounds : The bounds, smallest first; each holds by itself with probability 1 − `delta`.
    inapplicable : Why a bound that one might expect is missing, by its name.
    shares : Share of δ of each bound among which `best` chooses, by name.
    delta : Probability that `best` is exceeded.
    subject : The model.

    Examples
    --------
    >>> import math
    >>> flat = Bound("Hoeffding", 0.17, 0.05, observed=0.05, formula=lambda delta: 0.05 + (math.log(1 / delta) / 200) ** 0.5)
    >>> result = Guarantee((flat,), {}, {"Hoeffding": 0.5}, 0.05)
    >>> round(result.best.value, 4), result["Hoeffding"].value
    (0.1858, 0.17)
    """

    bounds: tuple[Bound, ...]
    inapplicable: Mapping[str, str]
    shares: Mapping[str, float]
    delta: float
    subject: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(sorted(self.bounds, key=lambda bound: (bound.value, bound.name))))

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, name: str) -> Bound:
        for bound in self.bounds:
            if bound.name == name:
                return bound
        if name in self.inapplicable:
            raise KeyError(f"{name} does not apply: {self.inapplicable[name]}")
        raise KeyError(f"no bound {name!r}; there are {[bound.name for bound in self.bounds]}")

    @cached_property
    def best(self) -> Bound:
        """The smallest bound of the portfolio, each at its share of δ; the trivial one if there is no other."""
        there = {bound.name: bound for bound in self.bounds}
        limit = max((there[name].limit for name in self.shares if name in there), default=1.0)
        trivial = Bound("trivial", limit, self.delta, limit, lambda delta: limit, limit=limit, data="no rows")
        paid = [there[name].at(share * self.delta) for name, share in self.shares.items() if name in there]
        best = min(paid, key=lambda bound: bound.value, default=trivial)
        if best.vacuous:
            return trivial
        if len(self.shares) > 1:
            chosen = f"chosen among {len(self.shares)} bounds, this one at {self.shares[best.name]:.3g} of delta"
            best = replace(best, assumptions=(*best.assumptions, chosen))
        return replace(best, delta=self.delta)

    def _title(self) -> str:
        best = self.best
        promised = f"risk ≤ {best.value:.4g} by {best.name}, with probability ≥ {1 - self.delta:.4g}"
        return f"{self.subject + ': ' if self.subject else ''}{'nothing can be promised' if best.vacuous else promised}"

    def _table(self) -> list[tuple[str, str, str, str, str]]:
        rows = [(b.name, _shown(b.value), _shown(b.observed), b.data, b.remark) for b in self.bounds]
        return rows + [(name, "", "", "", f"not applicable: {reason}") for name, reason in self.inapplicable.items()]

    def __str__(self) -> str:
        rows = [("bound", "value", "observed", "data", "remark"), *self._table()]
        w = [max(len(row[j]) for row in rows) for j in range(4)]
        lines = [f"  {a:<{w[0]}}  {b:>{w[1]}}  {c:>{w[2]}}  {d:<{w[3]}}  {e}".rstrip() for a, b, c, d, e in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"
        body = "".join(f"<tr>{''.join(f'<td {left}>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._table())
        head = "".join(f"<th {left}>{h}</th>" for h in ("bound", "value", "observed", "data", "remark"))
        return (
            f"<table class='lemmata-guarantee'><caption style='text-align:left'>{escape(self._title())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for a file or a web page."""
        return {
            "subject": self.subject,
            "delta": self.delta,
            "best": self.best.to_dict(),
            "bounds": [bound.to_dict() for bound in self.bounds],
            "inapplicable": dict(self.inapplicable),
        }
