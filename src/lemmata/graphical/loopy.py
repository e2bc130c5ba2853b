"""`loopy_marginals`: belief propagation on a graph with cycles, where exact inference would need too large tables.

The equations of `sum_product` are iterated instead of solved from the leaves. A fixed point of normalized messages is a
stationary point of the Bethe free energy (Yedidia, Freeman & Weiss), whose beliefs agree locally, Σ_{x_m∖x_n} b_m = b_n, and
whose estimate of the partition function is

    log Z ≈ Σ_m Σ b_m log(f_m / b_m) + Σ_n (d_n − 1) Σ b_n log b_n,        d_n the number of factors of variable n.

Without cycles both are exact, after one sweep to a root and back. With cycles they are approximations, of no known error, and
the iteration may not settle: damping, r ← (1 − δ) r_new + δ r, helps. Variables that are seen cut cycles. With maxima in place
of sums the beliefs are max-marginals: on a tree, and on a single cycle if it converges, their maximizer is the MAP (Weiss).
Certificate: messages, beliefs and the estimate obey the equations above, "local"; without cycles that is a proof.

Pearl (1988). Weiss, Neural Computation 12 (2000). Yedidia, Freeman & Weiss, IEEE Trans. Inf. Theory 51 (2005).
Elidan, McGraw & Koller, UAI (2006); Sutton & McCallum, UAI (2007), whose estimate of residuals is ours.
"""

from functools import cached_property

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.iterate import iterate
from lemmata.graphical.factor import Factor
from lemmata.graphical.junction_tree import ImpossibleEvidence
from lemmata.graphical.loopy_kernels import Wiring, beliefs, breadth_first, chase, decode, flood, sweep
from lemmata.graphical.model import Assignment, encode_evidence
from lemmata.graphical.sum_product import walk_forest

SCHEDULES = ("sequential", "residual", "flooding")


def wire(model, evidence=None):
    """Lay out the edges of a model's factor graph, with evidence."""
    layout = model.layout
    cards, scopes = layout.cards, layout.scopes
    state_starts = np.concatenate([[0], np.cumsum(cards)])
    seen = np.ones(state_starts[-1])
    numbers, starts, likelihoods = encode_evidence(model, evidence)
    for i, v in enumerate(numbers):
        seen[state_starts[v] : state_starts[v + 1]] *= likelihoods[starts[i] : starts[i + 1]]
    lengths = np.diff(layout.scope_starts)
    return Wiring(
        cards,
        layout.scope_starts,
        scopes,
        layout.table_starts,
        layout.tables,
        np.repeat(np.arange(len(lengths)), lengths),
        np.concatenate([[0], np.cumsum(cards[scopes])]).astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(scopes, minlength=len(cards)))]).astype(np.int64),
        np.argsort(scopes, kind="stable"),
        state_starts.astype(np.int64),
        seen,
    )


def known(wiring):
    """Tell which variables have one possible state, by evidence or by nature."""
    positive = np.concatenate([[0], np.cumsum(wiring.seen > 0)])
    return np.diff(positive[wiring.state_starts]) == 1


class LoopyBeliefs:
    """Keep the messages and beliefs of loopy belief propagation; made by `loopy_marginals`.

    Attributes
    ----------
    marginals : {variable: probabilities of its states}; of max-product, max-marginals divided by their sum.
    log_partition : Bethe's estimate of log Z; of max-product, of the largest logarithm of the product of factors.
    exact : Whether the graph has no cycle, and the messages converged: then the answers are exact.
    converged, n_iter, trace : How the iteration ended, and the largest change of a message in each sweep.
    messages : Normalized messages from factors to variables, one after another in the order of the factors' scopes.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> ring = FactorGraph([(pair, [[2, 1], [1, 2]]) for pair in ("ab", "bc", "ca")])
    >>> found = loopy_marginals(ring, {"a": 0})  # which cuts the ring
    >>> found.exact, found.marginals["b"].round(6).tolist() == ring.marginals({"a": 0})["b"].round(6).tolist()
    (True, True)
    """

    def __init__(self, model, evidence, wiring, run, forest, order, maximize):
        self.model, self.evidence, self.max_product = model, dict(evidence or {}), maximize
        self.messages, self.converged, self.n_iter, self.trace = run.state[0], run.converged, run.n_iter, run.trace
        self.exact = bool(forest and run.converged)
        variables, self._factors = np.empty(len(wiring.seen)), np.empty(len(wiring.tables))
        self.log_partition = float(beliefs(wiring, self.messages, maximize, variables, self._factors)) + model.layout.log_scale
        pieces = np.split(variables, wiring.state_starts[1:-1])
        self.marginals = dict(zip(model.variables, pieces, strict=True))
        self._states = np.full(len(wiring.cards), -1, dtype=np.int64)
        if maximize:
            decode(wiring, self.messages, order, self._states)

    def __repr__(self):
        how = "exact" if self.exact else "approximate" if self.converged else "not converged"
        return f"<LoopyBeliefs about {len(self.marginals)} variables, {how}, log Z = {self.log_partition:.6g}>"

    @cached_property
    def factor_marginals(self):
        """The belief of each factor, as a list of `Factor`."""
        tables = np.split(self._factors, self.model.layout.table_starts[1:-1])
        pairs = zip(self.model.factors, tables, strict=True)
        return [Factor(factor.variables, table.reshape(factor.shape)) for factor, table in pairs]

    def map(self):
        """Give the state of all variables that max-product found: {variable: label}, with its `log_value`.

        Variables are decided one after another, each given those before, so that ties are broken alike.
        """
        if not self.max_product:
            raise ValueError("A maximizer needs max-product messages: call loopy_marginals with max_product=True.")
        model = self.model
        codes = dict(zip(model.variables, self._states, strict=True))
        value = sum(float(factor.as_log().given(codes).values) for factor in model.factors)
        wiring = wire(model, self.evidence)
        with np.errstate(divide="ignore"):
            value += float(np.log(wiring.seen[wiring.state_starts[:-1] + self._states]).sum())
        return Assignment({name: model.states[name][k] for name, k in codes.items()}, value)

    def certify(self):
        """Check that messages, beliefs and log Z obey the equations; a proof if the graph has no cycle."""
        return certify_beliefs(self)


def loopy_marginals(
    model,
    evidence=None,
    *,
    damping=0.5,
    tol=1e-9,
    max_iter=1000,
    schedule="sequential",
    max_product=False,
    verbose=0,
    callbacks=(),
):
    """Approximate the marginals of a model by belief propagation, whatever cycles it has.

    Parameters
    ----------
    model : `FactorGraph`, `BayesNet`, or anything with `layout`, `variables`, `states` and `factors`.
    evidence : {variable: state, or likelihoods of its states}.
    damping : Part of the old message that is kept, from 0 to below 1. A graph without cycles needs none and uses none.
    tol : Stop when no message, which sums to one, changes by more.
    max_iter : Sweeps at most.
    schedule : "sequential": factors in turn, away from a root and back; "residual": always that whose neighbors' messages have
        changed most; "flooding": all at once.
    max_product : Whether to look for the most probable state of all variables together instead.
    verbose : 1 shows a progress bar.
    callbacks : Hear of every sweep, as in `iterate`.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> ring = FactorGraph([("ab", [[2, 1], [1, 1]]), ("bc", [[2, 1], [1, 1]]), ("ca", [[2, 1], [1, 1]])])
    >>> found = loopy_marginals(ring)
    >>> found.marginals["a"], ring.marginals()["a"]
    (array([0.7236068, 0.2763932]), array([0.72222222, 0.27777778]))
    >>> found.exact, found.certify().kind
    (False, 'local')
    >>> tree = loopy_marginals(ring, {"c": 0})
    >>> tree.marginals["a"], tree.exact, tree.certify().kind
    (array([0.76923077, 0.23076923]), True, 'proof')
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}.")
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be at least 0 and below 1, got {damping!r}.")
    wiring = wire(model, evidence)
    factors, variables, forest = breadth_first(wiring, known(wiring))
    keep, maximize = 0.0 if forest else float(damping), bool(max_product)
    n_factors = len(wiring.table_starts) - 1
    half = 1 << max(n_factors - 1, 1).bit_length()
    heap = np.zeros(2 * half)
    if schedule == "residual":
        _all_wait(heap, n_factors)

    def step(state):
        r, heap = state[0].copy(), state[1].copy()
        if schedule == "flooding":
            change = flood(wiring, r, keep, maximize)
        elif schedule == "sequential":
            change = sweep(wiring, factors, r, keep, maximize)
        else:
            change = chase(wiring, heap, r, keep, maximize, tol)
            if 0 <= change <= tol:  # the residuals are estimates: look at all messages before believing them
                change = flood(wiring, r, 1.0, maximize)
                if change > tol:
                    _all_wait(heap, n_factors)
        if change < 0:
            what = f"The evidence {dict(evidence)!r}" if evidence else "The model"
            raise ImpossibleEvidence(f"{what} has probability zero: the messages exclude every state of some variable.")
        return (r, heap), change, change

    start = np.repeat(1.0 / wiring.cards[wiring.scopes], wiring.cards[wiring.scopes])
    run = iterate(
        step, (start, heap), max_iter=max_iter, tol=tol, name="loopy belief propagation", verbose=verbose, callbacks=callbacks
    )
    return LoopyBeliefs(model, evidence, wiring, run, forest, variables, maximize)


def _all_wait(heap, n):
    """Give every factor the same priority."""
    half = len(heap) // 2
    heap[half : half + n] = 1.0
    for i in range(half - 1, 0, -1):
        heap[i] = max(heap[2 * i], heap[2 * i + 1])


def certify_beliefs(found):
    """Recompute every equation from the factors with plain arrays."""
    model, maximize = found.model, found.max_product
    wiring = wire(model, found.evidence)
    numbers = {name: v for v, name in enumerate(model.variables)}
    seen = np.split(wiring.seen, wiring.state_starts[1:-1])
    cut = known(wiring)
    r = np.split(found.messages, wiring.message_starts[1:-1]) if len(wiring.scopes) else []
    edges_of = np.split(wiring.edges, wiring.edge_starts[1:-1])
    product = [_unit(np.prod([seen[v], *(r[e] / r[e].max() for e in edges)], axis=0)) for v, edges in enumerate(edges_of)]
    drift, apart, bethe, e = 0.0, 0.0, 0.0, 0
    for factor, belief in zip(model.factors, found.factor_marginals, strict=True):
        scope = [numbers[name] for name in factor.variables]
        table = factor.as_log().values
        table = np.exp(table - (table.max() if np.isfinite(table.max()) else 0.0))
        q = []
        for p, v in enumerate(scope):
            others = [r[i] / r[i].max() for i in edges_of[v] if i != e + p]
            q.append(_unit(np.prod([seen[v], *others], axis=0)))
        for p, name in enumerate(factor.variables):
            told = [q[i] if i != p else np.ones_like(q[i]) for i in range(len(scope))]
            sent = _times(table, told)
            axes = tuple(i for i in range(len(scope)) if i != p)
            drift = max(drift, _far(_unit(sent.max(axis=axes) if maximize else sent.sum(axis=axes)), r[e + p]))
            side = belief.values.max(axis=axes) if maximize else belief.values.sum(axis=axes)
            apart = max(apart, _far(_unit(side), found.marginals[name]))
        apart = max(apart, _far(_unit(_times(table, q)), belief.values))
        bethe += _expected_log(factor.as_log().values, belief.values) - _entropy(belief.values, -1)
        e += len(scope)
    for v, name in enumerate(model.variables):
        b = found.marginals[name]
        with np.errstate(divide="ignore"):
            bethe += _expected_log(np.log(seen[v]), b)
        bethe += (len(edges_of[v]) - 1) * -_entropy(b)
    try:
        walk_forest([tuple(n for n in f.variables if not cut[numbers[n]]) for f in model.factors])
        kind = "proof"
    except ValueError:
        kind = "local"
    own = np.concatenate([found.marginals[name] for name in model.variables])
    checks = [
        Check("fixed point", drift, SAME_LIMIT, kind, "a further sweep changes no message"),
        Check("local consistency", apart, SAME_LIMIT, kind, "factors' beliefs agree with their variables'"),
        same(own, np.concatenate(product), "marginals", "they are the products of the messages of all factors"),
    ]
    if maximize:
        best = found.map().log_value
        off = abs(best - found.log_partition) / max(1.0, abs(best))
        checks.append(
            Check("value", off, SAME_LIMIT if kind == "proof" else np.inf, kind, "the state found has the value estimated")
        )
    else:
        off = abs(bethe - found.log_partition) / max(1.0, abs(bethe))
        checks.append(Check("log partition", float(off), SAME_LIMIT, kind, "it is minus the Bethe free energy of the beliefs"))
    return Certificate(*checks, subject="loopy belief propagation")


def _unit(values):
    total = values.sum()
    return values / total if total > 0 else values


def _times(table, told):
    """Multiply a table by a vector along each axis."""
    for axis, vector in enumerate(told):
        table = table * vector.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    return table


def _far(a, b):
    return float(np.abs(a - b).max())


def _expected_log(log_values, weights):
    """Σ w log f, where w is not 0."""
    held = weights > 0
    return float((weights[held] * log_values[held]).sum())


def _entropy(p, sign=1):
    """−Σ p log p."""
    held = p[p > 0]
    return float(-sign * (held * np.log(held)).sum())
