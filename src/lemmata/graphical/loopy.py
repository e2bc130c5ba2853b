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
from lemmata.graphical.evidence import encode_evidence, some
from lemmata.graphical.factor import Factor
from lemmata.graphical.junction_tree import ImpossibleEvidence
from lemmata.graphical.loopy_beliefs import beliefs, breadth_first, decode
from lemmata.graphical.loopy_kernels import Wiring, chase, flood, sweep
from lemmata.graphical.model import Assignment
from lemmata.graphical.sum_product import log_sum, walk_forest

SCHEDULES = ("sequential", "residual", "flooding")
EXACT = 1e-9  # by how much, in nats, a message of an exact answer may miss its equation: rounding of thousands of products
WIDE = 500.0  # tables whose logarithms reach farther than this, up or down, are not for plain numbers


def wire(model, evidence=None):
    """Lay out the edges of a model's factor graph, with evidence."""
    if not hasattr(model, "layout"):
        raise ValueError(
            f"loopy_marginals needs a model such as FactorGraph or BayesNet, got {type(model).__name__}; "
            "FactorGraph makes one of a list of factors."
        )
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


def in_logs(wiring, model):
    """Take logarithms of tables and evidence; those of the tables have no scale left out."""
    if any(factor.log for factor in model.factors):
        tables = np.concatenate([factor.as_log().values.ravel() for factor in model.factors])
    else:
        tables = _log(wiring.tables)
    return wiring._replace(tables=tables, seen=_log(wiring.seen))


def reaches_far(model):
    """Tell whether numbers of a table are too large or too small to be multiplied without logarithms."""
    if len(model.layout.tables) and model.layout.tables.max() > np.exp(WIDE):
        return True
    wide = [factor.values[np.isfinite(factor.values)] for factor in model.factors if factor.log]
    return any(np.ptp(values) > WIDE for values in wide if values.size)


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
    exact : Whether the answers are: the graph has no cycle, and every message obeys its equation to 1e-9, whatever `tol` is.
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
        self.converged, self.n_iter, self.trace = run.converged, run.n_iter, run.trace
        r, _, logs = run.state
        log_wiring, log_r = in_logs(wiring, model), r if logs else _log(r)
        self.messages, self._log_messages = np.exp(log_r) if logs else r, log_r if logs else None
        variables, self._factors = np.empty(len(wiring.seen)), np.empty(len(wiring.tables))
        value, safe = (0.0, False) if logs else beliefs(wiring, r, maximize, variables, self._factors, False)
        value += model.layout.log_scale
        if not safe:
            value, safe = beliefs(log_wiring, log_r, maximize, variables, self._factors, True)
            if not safe:
                raise _impossible(evidence)
            variables, self._factors = np.exp(variables), np.exp(self._factors)
        self.log_partition = float(value)
        left = flood(log_wiring, log_r.copy(), 1.0, maximize, True) if forest and run.converged else -1.0
        self.exact = bool(0.0 <= left <= EXACT)
        self.marginals = dict(zip(model.variables, np.split(variables, wiring.state_starts[1:-1]), strict=True))
        self._states = np.full(len(wiring.cards), -1, dtype=np.int64)
        if maximize:
            decode(log_wiring, log_r, order, self._states)

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
        wiring = in_logs(wire(model, self.evidence), model)
        value += float(wiring.seen[wiring.state_starts[:-1] + self._states].sum())
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
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0, got {tol!r}.")
    wiring, log_wiring = wire(model, evidence), None
    factors, variables, forest = breadth_first(wiring, known(wiring))
    keep, maximize = 0.0 if forest else float(damping), bool(max_product)
    n_factors = len(wiring.table_starts) - 1
    half = 1 << max(n_factors - 1, 1).bit_length()
    heap = np.zeros(2 * half)
    if schedule == "residual":
        _all_wait(heap, n_factors)

    def step(state):
        nonlocal log_wiring
        r, heap, logs = state[0].copy(), state[1].copy(), state[2]
        if logs and log_wiring is None:
            log_wiring = in_logs(wiring, model)
        w = log_wiring if logs else wiring
        if schedule == "flooding":
            change = flood(w, r, keep, maximize, logs)
        elif schedule == "sequential":
            change = sweep(w, factors, r, keep, maximize, logs)
        else:
            change = chase(w, heap, r, keep, maximize, logs, tol)
            if 0 <= change <= tol:  # the residuals are estimates: look at all messages before believing them
                change = flood(w, r, 1.0, maximize, logs)
                if change > tol:
                    _all_wait(heap, n_factors)
        if change < 0:
            if logs:
                raise _impossible(evidence)
            return step((_log(state[0]), state[1], True))  # products run out of range, or are all 0: logarithms tell
        return (r, heap, logs), change, change

    start, logs = np.repeat(1.0 / wiring.cards[wiring.scopes], wiring.cards[wiring.scopes]), reaches_far(model)
    state = (_log(start) if logs else start, heap, logs)
    run = iterate(
        step, state, max_iter=max_iter, tol=tol, name="loopy belief propagation", verbose=verbose, callbacks=callbacks
    )
    return LoopyBeliefs(model, evidence, wiring, run, forest, variables, maximize)


def _impossible(evidence):
    """Make the error for what no assignment agrees with."""
    what = f"The evidence about {some(evidence)}" if evidence else "The model"
    return ImpossibleEvidence(f"{what} has probability zero: the messages exclude every state of some variable.")


def _log(values):
    """Take logarithms, of 0 as well."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _all_wait(heap, n):
    """Give every factor the same priority."""
    half = len(heap) // 2
    heap[half : half + n] = 1.0
    for i in range(half - 1, 0, -1):
        heap[i] = max(heap[2 * i], heap[2 * i + 1])


def certify_beliefs(found):
    """Recompute every equation from the factors with plain arrays of logarithms."""
    model, maximize = found.model, found.max_product
    wiring = in_logs(wire(model, found.evidence), model)
    numbers = {name: v for v, name in enumerate(model.variables)}
    seen = np.split(wiring.seen, wiring.state_starts[1:-1])
    cut = known(wire(model, found.evidence))
    logs = _log(found.messages) if found._log_messages is None else found._log_messages
    drift, apart, bethe, e = _far(np.exp(logs), found.messages), 0.0, 0.0, 0
    r = np.split(logs, wiring.message_starts[1:-1]) if len(wiring.scopes) else []
    edges_of = np.split(wiring.edges, wiring.edge_starts[1:-1])
    whole = [np.sum([seen[v], *(r[i] for i in edges)], axis=0) for v, edges in enumerate(edges_of)]
    for factor, belief in zip(model.factors, found.factor_marginals, strict=True):
        scope, table, q = [numbers[name] for name in factor.variables], factor.as_log().values, []
        for p, v in enumerate(scope):
            q.append(_unit(np.sum([seen[v], *(r[i] for i in edges_of[v] if i != e + p)], axis=0)))
        for p, name in enumerate(factor.variables):
            told = [q[i] if i != p else np.zeros_like(q[i]) for i in range(len(scope))]
            sent = np.moveaxis(_times(table, told), p, 0).reshape(len(q[p]), -1)
            drift = max(drift, _gap(_unit(sent.max(axis=1) if maximize else log_sum(sent)), r[e + p], found._log_messages))
            axes = tuple(i for i in range(len(scope)) if i != p)
            side = belief.values.max(axis=axes) if maximize else belief.values.sum(axis=axes)
            apart = max(apart, _far(side / side.sum(), found.marginals[name]))
        apart = max(apart, _far(np.exp(_unit(_times(table, q))), belief.values))
        bethe += _expected_log(table, belief.values) - _entropy(belief.values, -1)
        e += len(scope)
    for v, name in enumerate(model.variables):
        b = found.marginals[name]
        bethe += _expected_log(seen[v], b)
        bethe += (len(edges_of[v]) - 1) * -_entropy(b)
    try:
        walk_forest([tuple(n for n in f.variables if not cut[numbers[n]]) for f in model.factors])
        kind = "proof"
    except ValueError:
        kind = "local"
    own = np.concatenate([found.marginals[name] for name in model.variables])
    product = np.exp(np.concatenate([_unit(values) for values in whole]))
    checks = [
        Check("fixed point", drift, SAME_LIMIT, kind, "a further sweep changes no message"),
        Check("local consistency", apart, SAME_LIMIT, kind, "factors' beliefs agree with their variables'"),
        same(own, product, "marginals", "they are the products of the messages of all factors"),
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
    """Normalize logarithms."""
    total = log_sum(values.ravel())
    return values - total if np.isfinite(total) else values


def _times(table, told):
    """Multiply a table by a vector along each axis, in logarithms."""
    for axis, vector in enumerate(told):
        table = table + vector.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    return table


def _gap(a, b, in_logs):
    """Give the distance of two messages, told as logarithms; in nats, or parts of them, if they are kept as such."""
    if in_logs is None:
        return _far(np.exp(a), np.exp(b))
    held = np.isfinite(a) & np.isfinite(b)
    gaps = np.abs(a[held] - b[held]) / np.maximum(1.0, np.abs(b[held]))
    return 1.0 if (np.isfinite(a) != np.isfinite(b)).any() else float(gaps.max(initial=0.0))


def _far(a, b):
    return float(np.abs(a - b).max(initial=0.0))


def _expected_log(log_values, weights):
    """Σ w log f, where w is not 0."""
    held = weights > 0
    return float((weights[held] * log_values[held]).sum())


def _entropy(p, sign=1):
    """−Σ p log p."""
    held = p[p > 0]
    return float(-sign * (held * np.log(held)).sum())
