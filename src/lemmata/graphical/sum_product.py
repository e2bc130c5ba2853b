"""`sum_product`: belief propagation on a factor graph that is a tree, in the notation of the lecture.

    q_{n→m}(x_n) = Π_{m′ ∈ M(n)∖m} r_{m′→n}(x_n)
    r_{m→n}(x_n) = Σ_{x_m∖x_n} f_m(x_m) Π_{n′ ∈ N(m)∖n} q_{n′→m}(x_n′)            P(x_n) ∝ Π_{m ∈ M(n)} r_{m→n}(x_n)

M(n) are the factors of variable n, N(m) the variables of factor m. A leaf sends q = 1 or r = f_m, every other vertex sends over
an edge once it has heard from all others: from the leaves to a root and back, two messages for each edge. On a tree the
equations have one solution, by induction from the leaves, so messages that obey them are a proof of the marginals; and
Σ_x Π r and Σ_x f Π q are the same Z at every vertex. A graph of several trees has the product of their Z.
With at most k factors a variable and l variables a factor, all binary, the messages cost O((N + M)(k + l) 2^(l−1)).
The joint of two variables needs one of them clamped: P(x_i, x_j) ∝ Π_{m ∈ M(i)} r_{m→i}(x_i; x_j). The product of both
variables' unclamped messages is that of their marginals instead. Messages are kept as logarithms, so that no tree is too long.

Kschischang, Frey & Loeliger, IEEE Trans. Inf. Theory 47 (2001).
"""

from collections import deque
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import Certificate, Check, same
from lemmata.graphical.evidence import code_of, soft
from lemmata.graphical.factor import Factor

AGREE = 1e-9  # part of log Z, or nats, in which two vertices may differ: rounding of sums of thousands of logarithms


class Edge(NamedTuple):
    """An edge of a factor graph, met on a walk away from the roots."""

    factor: int
    variable: object
    outward: bool  # whether the factor is the end that is farther from the root


def walk_forest(scopes, variables=(), root=None):
    """Walk a factor graph from a root of each of its trees, and list its edges in the order in which they are met.

    Parameters
    ----------
    scopes : The variables of each factor.
    variables : All variables, if some are in no factor.
    root : Variable to begin with.

    Examples
    --------
    >>> [(edge.factor, edge.variable) for edge in walk_forest([("a", "b"), ("b", "c")], root="b")]
    [(0, 'b'), (0, 'a'), (1, 'b'), (1, 'c')]
    >>> walk_forest([("a", "b"), ("b", "c"), ("c", "a")])
    Traceback (most recent call last):
    ...
    ValueError: The factor graph is not a tree: it has the cycle 'a' - f0 - 'b' - f1 - 'c' - f2 - 'a'; use a junction tree.
    """
    factors_of = {name: [] for name in ([] if root is None else [root])}
    for name in variables:
        factors_of.setdefault(name, [])
    for m, scope in enumerate(scopes):
        for name in scope:
            factors_of.setdefault(name, []).append(m)
    before_variable, before_factor, edges = {}, {}, []
    for start in factors_of:
        if start in before_variable:
            continue
        before_variable[start] = None
        waiting = deque([start])
        while waiting:
            name = waiting.popleft()
            for m in factors_of[name]:
                if m == before_variable[name]:
                    continue
                before_factor[m] = name
                edges.append(Edge(m, name, True))
                for other in scopes[m]:
                    if other == name:
                        continue
                    if other in before_variable:
                        raise ValueError(_cycle(before_variable, before_factor, m, name, other))
                    before_variable[other] = m
                    edges.append(Edge(m, other, False))
                    waiting.append(other)
    return edges


def _cycle(before_variable, before_factor, m, name, other):
    """Say in words which cycle the factor m closes between two variables that are both reached already."""

    def back(name):
        path = [repr(name)]
        while (factor := before_variable[name]) is not None:
            name = before_factor[factor]
            path += [f"f{factor}", repr(name)]
        return path

    one, two = back(name), back(other)
    shared = next(vertex for vertex in one if vertex in two)
    there, here = one[: one.index(shared)], two[: two.index(shared)]
    ring = " - ".join([shared, *reversed(there), f"f{m}", *here, shared])
    return f"The factor graph is not a tree: it has the cycle {ring}; use a junction tree."


class Tree:
    """A factor graph without cycles: logarithms of its tables, what is seen of its variables, and the work done on it."""

    def __init__(self, factors, evidence):
        self.factors = [factor.as_log() for factor in factors]
        self.scopes = [factor.variables for factor in self.factors]
        self.cards = {}
        for factor in self.factors:
            for name, size in zip(factor.variables, factor.shape, strict=True):
                if self.cards.setdefault(name, size) != size:
                    raise ValueError(
                        f"The variable {name!r} has {self.cards[name]} states in one factor and {size} in another."
                    )
        self.factors_of = {name: [] for name in self.cards}
        for m, scope in enumerate(self.scopes):
            for name in scope:
                self.factors_of[name].append(m)
        self.seen = {name: np.zeros(size) for name, size in self.cards.items()}
        for name, what in evidence.items():
            self.seen[name] = _log_likelihoods(name, what, self.cards)
        self.operations = 0

    def to_factor(self, n, m, r):
        """q_{n→m}: multiply what the other factors say about variable n."""
        told = [r[other, n] for other in self.factors_of[n] if other != m]
        self.operations += self.cards[n] * max(len(told) - 1, 0)
        return np.sum(told, axis=0) + self.seen[n] if told else self.seen[n]

    def to_variable(self, m, n, q):
        """r_{m→n}: multiply factor m by what its other variables say, and sum over them."""
        scope, values = self.scopes[m], self.factors[m].values
        for axis, other in enumerate(scope):
            if other != n:
                values = values + q[other, m].reshape([-1 if i == axis else 1 for i in range(len(scope))])
        self.operations += values.size * len(scope) - self.cards[n]  # l − 1 products for each entry, then sums
        return log_sum(np.moveaxis(values, scope.index(n), 0).reshape(self.cards[n], -1))

    def inward(self, edges):
        """Send messages from the leaves to the roots."""
        q, r = {}, {}
        for m, n, outward in reversed(edges):
            if outward:
                r[m, n] = self.to_variable(m, n, q)
            else:
                q[n, m] = self.to_factor(n, m, r)
        return q, r

    def belief(self, n, r):
        """Give the logarithm of Π r_{m→n}, not normalized."""
        return np.sum([self.seen[n], *(r[m, n] for m in self.factors_of[n])], axis=0)


def log_sum(values):
    """Sum along the last axis in logarithms; −∞ is nothing."""
    peak = values.max(axis=-1)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - safe[..., None]).sum(axis=-1)) + safe


def _log_likelihoods(name, what, cards):
    """Turn the number of a state, or a list with the likelihood of each state, into logarithms."""
    if name not in cards:
        raise ValueError(f"There is evidence for {name!r}, which is in no factor.")
    size = cards[name]
    if isinstance(what, (list, np.ndarray)) and np.ndim(what) == 1:
        likelihoods = soft(name, what, size)
    else:
        likelihoods = np.eye(size)[code_of(name, what, {state: state for state in range(size)}, size)]
    with np.errstate(divide="ignore"):
        return np.log(likelihoods)


def roots_of(edges, variables):
    """Find the root of the tree in which each variable is."""
    roots, root_of_factor = {}, {}
    for m, n, outward in edges:
        if outward:
            root_of_factor[m] = roots.setdefault(n, n)
        else:
            roots[n] = root_of_factor[m]
    return {n: roots.get(n, n) for n in variables}


class SumProduct:
    """Keep the messages of a tree, and what they say; made by `sum_product`.

    Attributes
    ----------
    q : {(variable, number of a factor): logarithms of q_{n→m}}.
    r : {(number of a factor, variable): logarithms of r_{m→n}}.
    marginals : {variable: probabilities}.
    log_partition : log Z, of all trees together.
    operations : How many multiplications and additions the messages took.

    Examples
    --------
    >>> from lemmata.graphical import Factor, sum_product
    >>> found = sum_product([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
    >>> 27 * found.marginals["a"], len(found.q) + len(found.r)
    (array([14., 13.]), 8)
    """

    def __init__(self, factors, evidence=None):
        self.factors, self.evidence = _as_factors(factors), dict(evidence or {})
        tree = Tree(self.factors, self.evidence)
        edges = walk_forest(tree.scopes)
        self.q, self.r = tree.inward(edges)
        for m, n, outward in edges:
            if outward:
                self.q[n, m] = tree.to_factor(n, m, self.r)
            else:
                self.r[m, n] = tree.to_variable(m, n, self.q)
        self.operations = tree.operations
        self.log_partition = _whole(tree, edges, self.r)
        if self.log_partition == -np.inf:
            raise ValueError(
                "No assignment has a probability above zero: factors, or factors and evidence, contradict each other."
            )
        beliefs = {n: tree.belief(n, self.r) for n in tree.cards}
        self.marginals = {n: np.exp(belief - log_sum(belief)) for n, belief in beliefs.items()}

    def __repr__(self):
        return (
            f"<SumProduct of {len(self.marginals)} variables and {len(self.factors)} factors, log Z = {self.log_partition:.6g}>"
        )

    def log_partitions(self):
        """Find log Z anew at every vertex: {variable: log Σ Π r} and [log Σ f Π q of each factor].

        In a graph of several trees a vertex knows the Z of its own tree; those of the others are added.
        """
        tree = Tree(self.factors, self.evidence)
        edges = walk_forest(tree.scopes)
        roots, whole = roots_of(edges, tree.cards), _whole(tree, edges, self.r)
        at = {n: float(log_sum(tree.belief(n, self.r))) for n in tree.cards}
        others = {root: whole - at[root] for root in set(roots.values())}
        factors = []
        for m, (factor, scope) in enumerate(zip(tree.factors, tree.scopes, strict=True)):
            for n in scope:
                factor = factor * Factor([n], self.q[n, m], log=True)
            factors.append(factor.total() + others[roots[scope[0]]] if scope else whole)
        return {n: value + others[roots[n]] for n, value in at.items()}, factors

    def pairwise(self, i, j):
        """Find the joint of two variables, with an axis for each: clamp x_j to each of its states, and read P(x_i, x_j).

        Examples
        --------
        >>> chain = [Factor([1, 2], [[3, 1], [1, 2]]), Factor([2, 3], [[2, 1], [1, 4]])]
        >>> sum_product(chain).pairwise(1, 3) * 27
        array([[7., 7.],
               [4., 9.]])
        """
        tree = Tree(self.factors, self.evidence)
        for name in (i, j):
            if name not in tree.cards:
                raise ValueError(f"There is no variable {name!r} in any factor.")
        if i == j:
            raise ValueError(f"A joint needs two variables, and both are {i!r}; its marginal is in marginals.")
        edges, seen = walk_forest(tree.scopes, root=i), tree.seen[j]
        columns = []
        for state in range(tree.cards[j]):
            tree.seen[j] = np.where(np.arange(tree.cards[j]) == state, seen, -np.inf)
            _, r = tree.inward(edges)
            mine = tree.belief(i, r)
            columns.append(mine + _whole(tree, edges, r) - log_sum(mine) if np.isfinite(mine).any() else mine)
        return np.exp(np.stack(columns, axis=1) - self.log_partition)

    def certify(self):
        """Check every message, marginal and Z by the equations of the module, with the algebra of `Factor`."""
        factors = [factor.as_log() for factor in self.factors]
        tree = Tree(factors, self.evidence)
        edges, q, r, marginals = walk_forest(tree.scopes), {}, {}, {}
        for n, seen in tree.seen.items():
            for m in tree.factors_of[n]:
                q[n, m] = _product(
                    Factor([n], seen, log=True), [Factor([n], self.r[a, n], log=True) for a in tree.factors_of[n] if a != m]
                )
                others = [Factor([a], self.q[a, m], log=True) for a in tree.scopes[m] if a != n]
                r[m, n] = _product(factors[m], others).marginal([n])
            told = [Factor([n], self.r[m, n], log=True) for m in tree.factors_of[n]]
            marginals[n] = _product(Factor([n], seen, log=True), told).normalized().as_linear().values
        at_variables, at_factors = self.log_partitions()
        values = np.array([self.log_partition, *at_variables.values(), *at_factors])
        spread = np.ptp(values) / max(1.0, abs(self.log_partition))
        n_messages = abs(len(self.q) + len(self.r) - 2 * len(edges))
        return Certificate(
            Check("messages", n_messages, 0, "proof", "there are two messages for each edge of a graph without cycles"),
            _alike(self.q, q, "messages to factors", "each is the product of the other factors' messages"),
            _alike(self.r, r, "messages to variables", "each is the sum of the factor times the other variables' messages"),
            same(_flat(self.marginals), _flat(marginals), "marginals", "they are the products of the messages of all factors"),
            Check("partition", float(spread), AGREE, "proof", "log Z is the same at every vertex"),
            subject="sum-product",
        )


def _as_factors(factors):
    """Make factors of pairs (variables, table)."""
    if hasattr(factors, "factors"):
        raise ValueError(f"sum_product takes a list of factors, not a {type(factors).__name__}; give it the model's .factors.")
    return [factor if isinstance(factor, Factor) else Factor(*factor) for factor in factors]


def _whole(tree, edges, r):
    """Add log Z of all trees, read at their roots, and the factors without variables."""
    roots = set(roots_of(edges, tree.cards).values())
    constant = sum(float(factor.values) for factor in tree.factors if not factor.variables)
    return float(constant + sum(log_sum(tree.belief(n, r)) for n in tree.cards if n in roots))


def _product(factor, others):
    for other in others:
        factor = factor * other
    return factor


def _flat(arrays):
    return np.concatenate([arrays[key] for key in arrays]) if arrays else np.empty(0)


def _alike(stored, found, name, claim):
    """Compare logarithms of messages; −∞ must be where it belongs."""
    one = _flat({key: stored[key] for key in found})
    two = _flat({key: found[key].values for key in found})
    hidden = [np.where(np.isneginf(values), np.nan, values) for values in (one, two)]
    return same(*hidden, name, claim, floor=1.0)  # a nat: logarithms may all be 0


def sum_product(factors, evidence=None):
    """Send the messages of sum-product over a factor graph that is a tree, or several trees.

    Parameters
    ----------
    factors : List of `Factor`, or of pairs (variables, table).
    evidence : {variable: number of its state, or a list with the likelihood of each}.

    Examples
    --------
    >>> chain = [Factor(["a", "b"], [[3, 1], [1, 2]]), Factor(["b", "c"], [[2, 1], [1, 4]])]
    >>> found = sum_product(chain)
    >>> found.marginals["b"] * 27, round(float(np.exp(found.log_partition)), 9)
    (array([12., 15.]), 27.0)
    >>> np.exp(found.r[1, "b"]), len(found.q) + len(found.r)
    (array([3., 5.]), 8)
    >>> sum_product(chain, {"a": 0}).marginals["c"] * 14
    array([7., 7.])
    >>> found.certify().kind
    'proof'
    """
    return SumProduct(factors, evidence)
