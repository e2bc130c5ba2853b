"""How good a machine is, from its coefficients and the data alone: primal and dual objectives, and the best bias.

For a classifier, P = ½‖w‖² + Σ cᵢ max(0, 1 − yᵢ(gᵢ + b)) with g = Kc, w = Σ cᵢφ(xᵢ), cᵢ = αᵢyᵢ, and every α with 0 ≤ αᵢ ≤ cᵢ
and Σ αᵢyᵢ = 0 has D(α) = Σ αᵢ − ½‖Σ αᵢyᵢφ(xᵢ)‖² ≤ P, for every machine. So coefficients are first moved into these constraints,
and then the gap P − D proves how far the machine can be from the best one. A regressor has max(0, |yᵢ − gᵢ − b| − ε) in place
of the hinge and D = Σ yᵢβᵢ − ε Σ |βᵢ| − ½‖Σ βᵢφ(xᵢ)‖² with |βᵢ| ≤ cᵢ, Σ βᵢ = 0. With a hard margin P = ½‖w‖²/(least margin)²,
and max over multiples of D is (Σ α)²/(2‖Σ αᵢyᵢφ(xᵢ)‖²). The losses as functions of b alone are piecewise linear: their
minimizers form an interval, and its middle is the bias that is meant where it is not unique [1].

[1] Burges & Crisp, NIPS (1999).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, TINY, Check, gap
from lemmata.kernels import Linear

UNIT = 1e-2  # smallest bias, in units of the margin, of which a part is asked for: 1e-3 of it is what solvers promise
FEASIBLE = 1e-6  # of the largest bound: by how much stored coefficients may leave their constraints, for roundings
BIAS_LIMIT = 1e-3
ROUNDING = 1e-14  # of the square of the sum of all terms: a squared norm below is a difference of roundings


class Verdict(NamedTuple):
    """What was found about one machine."""

    primal: float
    dual: float
    null: float  # primal objective of w = 0 with its best bias
    infeasible: float  # by how much the coefficients leave their constraints, as a share of the largest bound
    bias: float  # distance from the best bias, as a share of the bias
    norm: float  # ‖w‖


def balanced(c, cap):
    """Move coefficients into −cap ≤ c ≤ cap and Σ c = 0: clip, then scale the heavier side down."""
    c = np.clip(c, -cap, cap)
    plus, minus = c[c > 0].sum(), -c[c < 0].sum()
    least = min(plus, minus)
    return np.where(c > 0, c * (least / max(plus, TINY)), c * (least / max(minus, TINY)))


def one_sided(c, y, cap):
    """Move coefficients of a classifier into 0 ≤ y·c ≤ cap and Σ c = 0."""
    return balanced(np.where(y * c > 0, c, 0.0), cap)


def middle(points, jumps, slope):
    """Return the middle of the minimizers of a convex function of negative slope whose slope jumps up at points."""
    order = np.argsort(points, kind="stable")
    points, slopes = points[order], slope + np.cumsum(jumps[order])
    flat = 1e-12 * np.abs(jumps).sum()  # sums of many jumps that should cancel
    first = int(np.argmax(slopes >= -flat))
    last = first + 1 if slopes[first] <= flat and first + 1 < len(points) else first
    return float(points[first] + points[last]) / 2


def squared_norms(kernel, rows, coefficients, scores):
    """Return ‖w‖² = cᵀKc of machines, (m,), from coefficients and scores (n, m); zero where there is nothing but rounding."""
    if isinstance(kernel, Linear):
        planes = rows.T @ coefficients  # no difference of large numbers
        return np.asarray(planes**2).sum(axis=0)
    squares = np.einsum("np,np->p", coefficients, scores)
    largest = float(np.abs(kernel.diagonal(kernel.prepare(rows.astype(float)))).max(initial=0.0))
    return np.where(squares > ROUNDING * largest * np.abs(coefficients).sum(axis=0) ** 2, squares, 0.0)


def judge_classifier(c, g, fixed, g_fixed, y, cap, bias, squared):
    """Judge a classifier with finite bounds; `fixed` are its coefficients moved into their constraints, with scores g_fixed.

    `squared` is ‖w‖².
    """

    def loss(scores, b):
        return float(cap @ np.maximum(1 - y * (scores + b), 0.0))

    best, best_null = (middle(y - scores, cap, -cap[y > 0].sum()) for scores in (g, np.zeros(len(g))))
    return Verdict(
        primal=0.5 * squared + loss(g, bias),
        dual=float(y @ fixed - 0.5 * fixed @ g_fixed),
        null=loss(np.zeros(len(g)), best_null),
        infeasible=_outside(c, y, cap),
        bias=abs(bias - best) / max(abs(bias), UNIT),
        norm=np.sqrt(squared),
    )


def judge_hard_margin(c, g, fixed, g_fixed, y, bias, squared):
    """Judge a classifier with a hard margin."""
    least = float((y * (g + bias)).min())
    best = float((1 - g[y > 0]).max() + (-1 - g[y < 0]).min()) / 2  # y(g + b) ≥ 1 holds between these two
    primal = 0.5 * squared / least**2 if least > 0 else np.inf
    dual = float(y @ fixed) ** 2 / max(2 * float(fixed @ g_fixed), TINY)
    outside = _outside(c, y, np.full(len(c), np.abs(c).max(initial=0.0)))
    distance = abs(bias - best) / max(abs(bias), UNIT)
    return Verdict(max(primal, 0.5 * squared), dual, primal, outside, distance, np.sqrt(squared))


def judge_regressor(c, g, fixed, g_fixed, y, cap, epsilon, bias, squared):
    """Judge a regressor."""

    def loss(scores, b):
        return float(cap @ np.maximum(np.abs(y - scores - b) - epsilon, 0.0))

    def best(scores):
        points = np.concatenate([y - scores - epsilon, y - scores + epsilon])
        return middle(points, np.concatenate([cap, cap]), -cap.sum())

    nothing = np.zeros(len(g))
    scale = max(abs(bias), UNIT * float(np.abs(y - g).max(initial=0.0)), TINY)
    return Verdict(
        primal=0.5 * squared + loss(g, bias),
        dual=float(y @ fixed - epsilon * np.abs(fixed).sum() - 0.5 * fixed @ g_fixed),
        null=loss(nothing, best(nothing)),
        infeasible=max(float((np.abs(c) - cap).max(initial=0.0)), abs(float(c.sum()))) / max(float(cap.max()), TINY),
        bias=abs(bias - best(g)) / scale,
        norm=np.sqrt(squared),
    )


def _outside(c, y, cap):
    """Return by how much 0 ≤ y·c ≤ cap or Σ c = 0 are missed, as a share of the largest bound."""
    a = y * c
    return max(float(-a.min()), float((a - cap).max()), abs(float(c.sum())), 0.0) / max(float(cap.max()), TINY)


def verdict_checks(verdicts, loss):
    """Return the checks of some machines: of the worst of them each."""
    shares = [v.primal - v.dual for v in verdicts]
    worst = verdicts[int(np.argmax(np.array(shares) / [max(abs(v.primal), TINY) for v in verdicts]))]
    claim = f"no machine lowers ½‖w‖² + {loss} by more than this share"
    return [
        gap(worst.primal, worst.dual, worst.null, claim, limit=GAP_LIMIT),
        Check(
            "feasible",
            max(v.infeasible for v in verdicts),
            FEASIBLE,
            "proof",
            "dual coefficients are within their bounds and balanced",
        ),
        Check("intercept", max(v.bias for v in verdicts), BIAS_LIMIT, "proof", "the bias is the middle of the best ones"),
    ]


def margin_check(margin, verdicts):
    """Check the stored margins 1/‖w‖."""
    norms = np.array([v.norm for v in verdicts])
    expected = np.divide(1.0, norms, out=np.full(len(norms), np.inf), where=norms > 0)
    finite = np.isfinite(expected)
    stored = np.atleast_1d(margin)
    if stored.shape != expected.shape or not np.array_equal(np.isfinite(stored), finite):
        return Check("margin", np.inf, SAME_LIMIT, "proof", "margins are 1/‖w‖")
    difference = np.abs(stored[finite] / expected[finite] - 1).max(initial=0.0)
    return Check("margin", float(difference), SAME_LIMIT, "proof", "margins are 1/‖w‖")
