"""`GaussianFactorGraph`: exact inference with continuous variables, by messages in information form.

    f_m(x_m) = exp(c − ½ xᵀJx + hᵀx)         p(x) ∝ Π f_m = exp(Σc − ½ xᵀJx + hᵀx),  J, h sums over factors

The sums of sum-product become integrals. A product of factors adds J, h and c; the integral over a block v leaves a factor with

    J_SS − J_Sv J_vv⁻¹ J_vS        h_S − J_Sv J_vv⁻¹ h_v        c + ½ (h_vᵀ J_vv⁻¹ h_v − log |J_vv / 2π|)

and exists if and only if J_vv is positive definite. Integrating one variable after another sends a message for each; going
back, the same numbers are p(x_v | x_S), which give means, covariances and draws. On a chain this is the Kalman smoother, on a
tree belief propagation; a graph with cycles only has larger S. The messages over the edges of a tree, both ways: `messages`.
Certificate, without any message: the means solve Jμ = h; and J is put together again from the covariances of the bags
C = v ∪ S of the elimination, J = Σ [Σ_C⁻¹] − Σ [Σ_S⁻¹], which has one solution (Lauritzen): every covariance is proved.

Weiss & Freeman, Neural Computation 13 (2001). Lauritzen, Graphical Models (1996), section 5.3. Takahashi, Fagan & Chin (1973).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length, same
from lemmata.core.random import generator
from lemmata.graphical.elimination import eliminate
from lemmata.graphical.sum_product import walk_forest

LOG_2PI = np.log(2 * np.pi)
CONDITION = 8 * np.finfo(float).eps  # rounding of an inverse, for each unit of its condition number
PIVOT = 16 * np.finfo(float).eps  # part of its diagonal below which a pivot is what rounding left of 0
LOOSEST = 1e-3  # a tenth of the sabotage that must be refused, however bad the condition


class GaussianFactor(NamedTuple):
    """Keep exp(c − ½ xᵀJx + hᵀx) over named variables.

    Attributes
    ----------
    variables : Names.
    precision : J, with the entries of the variables in order.
    information : h.
    log_constant : c.
    sizes : Number of entries of each variable; default: equal parts of J.

    Examples
    --------
    >>> GaussianFactor(["x", "y"], [[1.0, -0.5], [-0.5, 1.0]], [0.0, 1.0]).variables
    ['x', 'y']
    """

    variables: tuple
    precision: np.ndarray
    information: np.ndarray
    log_constant: float = 0.0
    sizes: tuple | None = None


def linear_gaussian(variable, parents=None, offset=0.0, covariance=1.0):
    """Make the factor of a variable that depends linearly on others: y = Σ A x + b + noise, or of one that depends on none.

    Parameters
    ----------
    parents : {variable: A}, matrices; a number stands for that multiple of the identity.
    offset : b.
    covariance : Of the noise.

    Examples
    --------
    >>> linear_gaussian("y", {"x": 2.0}, covariance=0.5).precision
    array([[ 2., -4.],
           [-4.,  8.]])
    """
    R = np.atleast_2d(np.asarray(covariance, dtype=float))
    d = len(R)
    b = np.broadcast_to(np.asarray(offset, dtype=float), (d,))
    try:
        factored = cho_factor(_symmetric(R, f"The covariance of {variable!r}"), lower=True)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"The covariance of {variable!r} is not positive definite; noise without a density has no J."
        ) from None
    blocks = [np.eye(d)]
    for name, A in (parents or {}).items():
        A = np.asarray(A, dtype=float)
        A = A * np.eye(d) if A.ndim == 0 else np.atleast_2d(A)
        if A.ndim != 2 or len(A) != d:
            raise ValueError(f"The matrix from {name!r} to {variable!r} needs {d} rows, and has the shape {A.shape}.")
        blocks.append(-A)
    M = np.hstack(blocks)
    half, shift = cho_solve(factored, M), cho_solve(factored, b)
    constant = -0.5 * b @ shift - 0.5 * d * LOG_2PI - np.log(np.diagonal(factored[0])).sum()
    sizes = tuple(block.shape[1] for block in blocks)
    return GaussianFactor((variable, *(parents or {})), M.T @ half, M.T @ shift, float(constant), sizes)


def _symmetric(matrix, what):
    """Check a square symmetric matrix of finite numbers."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{what} must be a square matrix of finite numbers.")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise ValueError(f"{what} must be symmetric.")
    return (matrix + matrix.T) / 2


class Moments(NamedTuple):
    """Mean and covariance of a normal law."""

    mean: np.ndarray
    covariance: np.ndarray


class Step(NamedTuple):
    """What integrating one variable leaves: p(x_v | x_S) in factored form."""

    rest: tuple  # S, in the order of elimination
    factored: tuple  # Cholesky factor of J_vv
    gain: np.ndarray  # J_vv⁻¹ J_vS
    information: np.ndarray  # h_v


class Message(NamedTuple):
    """A message over one edge of a tree: exp(c − ½ xᵀJx + hᵀx) of one variable."""

    precision: np.ndarray
    information: np.ndarray
    log_constant: float


def checked(factor, m):
    """Check one factor: arrays of the right shapes, and sizes."""
    names = tuple(factor.variables)
    J = _symmetric(np.atleast_2d(np.asarray(factor.precision, dtype=float)), f"The precision of factor {m} over {list(names)}")
    h = np.atleast_1d(np.asarray(factor.information, dtype=float))
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"Factor {m} needs at least one variable, and each once, got {list(names)}.")
    sizes = factor.sizes if factor.sizes is not None else (len(J) // len(names),) * len(names)
    if sum(sizes) != len(J) or len(sizes) != len(names) or h.shape != (len(J),) or not np.isfinite(h).all():
        raise ValueError(
            f"Factor {m} over {list(names)} has a precision of {len(J)} rows, {h.size} numbers of information and the sizes "
            f"{list(sizes)}: these must agree."
        )
    return GaussianFactor(names, J, h, float(factor.log_constant), tuple(int(size) for size in sizes))


def condition(factor, free, values):
    """Clamp the entries of a factor that are seen."""
    keep = np.concatenate(
        [np.isin(np.arange(size), free[name]) for name, size in zip(factor.variables, factor.sizes, strict=True)]
    )
    if keep.all():
        return factor
    x = np.concatenate([values[name] for name in factor.variables])[~keep]
    J, h = factor.precision, factor.information
    left = [name for name in factor.variables if len(free[name])]
    return GaussianFactor(
        tuple(left),
        J[np.ix_(keep, keep)],
        h[keep] - J[np.ix_(keep, ~keep)] @ x,
        float(factor.log_constant + h[~keep] @ x - 0.5 * x @ J[np.ix_(~keep, ~keep)] @ x),
        tuple(len(free[name]) for name in left),
    )


def spans(names, sizes):
    """Give the slice of each variable in a vector of several."""
    ends = np.cumsum([sizes[name] for name in names])
    return {name: slice(int(end) - sizes[name], int(end)) for name, end in zip(names, ends, strict=True)}


def gather(names, sizes, factors):
    """Add factors into one J and h over the given variables."""
    at = spans(names, sizes)
    n = sum(sizes[name] for name in names)
    J, h = np.zeros((n, n)), np.zeros(n)
    for factor in factors:
        index = np.concatenate([np.arange(at[name].start, at[name].stop) for name in factor.variables])
        J[np.ix_(index, index)] += factor.precision
        h[index] += factor.information
    return J, h


def integrate(J, h, d, name, diagonal):
    """Integrate the first d entries out: the factored block, its gain, and J, h and c of what is left.

    `diagonal` is that of all factors: a pivot that is all but 0 beside it is rounding, not information.
    """
    try:
        factored = cho_factor(J[:d, :d], lower=True)
        positive = (np.diagonal(factored[0]) ** 2 > PIVOT * diagonal).all()
    except np.linalg.LinAlgError:
        positive = False
    if not positive:
        raise ValueError(
            f"The factors have no finite integral over {name!r}: the precision is not positive definite there, so nothing ties "
            "the variable down; add a prior or an observation."
        )
    gain, mean = cho_solve(factored, J[:d, d:]), cho_solve(factored, h[:d])
    constant = 0.5 * (h[:d] @ mean + d * LOG_2PI) - np.log(np.diagonal(factored[0])).sum()
    rest = J[d:, d:] - J[d:, :d] @ gain
    return factored, gain, ((rest + rest.T) / 2, h[d:] - J[d:, :d] @ mean, float(constant))


class Problem:
    """Factors with the evidence put in, over the entries that are not seen."""

    def __init__(self, graph, evidence):
        self.values = {name: np.full(size, np.nan) for name, size in graph.sizes.items()}
        for name, value in (evidence or {}).items():
            if name not in graph.sizes:
                raise ValueError(f"There is evidence for {name!r}, which is in no factor.")
            value = np.atleast_1d(np.asarray(value, dtype=float))
            if value.shape != (graph.sizes[name],) or np.isinf(value).any():
                raise ValueError(f"The evidence for {name!r} must be {graph.sizes[name]} finite numbers (NaN where not seen).")
            self.values[name] = value
        self.free = {name: np.flatnonzero(np.isnan(value)) for name, value in self.values.items()}
        self.factors = [condition(factor, self.free, self.values) for factor in graph.factors]
        self.sizes = {name: len(entries) for name, entries in self.free.items() if len(entries)}
        self.diagonal = {name: np.zeros(size) for name, size in self.sizes.items()}
        for factor in self.factors:
            for name, at in spans(factor.variables, self.sizes).items():
                self.diagonal[name] += np.abs(np.diagonal(factor.precision)[at])

    def graph(self):
        """Give the neighbors of each variable."""
        near = {name: {} for name in self.sizes}
        for factor in self.factors:
            for name in factor.variables:
                near[name].update(dict.fromkeys(other for other in factor.variables if other != name))
        return near

    def eliminate(self, order):
        """Integrate the variables one after another: {variable: Step}, in that order, and log Z."""
        order = eliminate(self.graph(), order).order
        rank = {name: i for i, name in enumerate(order)}
        waiting = {name: [] for name in order}
        constant = sum(factor.log_constant for factor in self.factors)
        for factor in self.factors:
            if factor.variables:
                waiting[min(factor.variables, key=rank.get)].append(factor)
        steps = {}
        for name in order:
            factors = waiting.pop(name)
            scope = sorted({other for factor in factors for other in factor.variables} | {name}, key=rank.get)
            J, h = gather(scope, self.sizes, factors)
            d, rest = self.sizes[name], tuple(scope[1:])
            factored, gain, (left, information, c) = integrate(J, h, d, name, self.diagonal[name])
            constant += c
            if rest:
                waiting[rest[0]].append(GaussianFactor(rest, left, information))
            steps[name] = Step(rest, factored, gain, h[:d])
        return steps, float(constant)


def backward(steps, noise):
    """Solve x_v = J_vv⁻¹ h_v − gain x_S + noise_v from the last variable to the first; noise has a row for each draw."""
    x = {}
    for name in reversed(steps):
        step = steps[name]
        x[name] = noise[name] + cho_solve(step.factored, step.information)
        if step.rest:
            x[name] = x[name] - np.hstack([x[other] for other in step.rest]) @ step.gain.T
    return x


def bag_covariances(steps, sizes):
    """Find the covariance of each bag v ∪ S, from the last to the first: Σ_vS = −gain Σ_SS, Σ_vv = J_vv⁻¹ + gain Σ_SS gainᵀ."""
    bags = {}
    for name in reversed(steps):
        step, d = steps[name], sizes[name]
        inner = (
            _block(bags[step.rest[0]], (step.rest[0], *steps[step.rest[0]].rest), step.rest, sizes)
            if step.rest
            else np.empty((0, 0))
        )
        cross = -step.gain @ inner
        own = cho_solve(step.factored, np.eye(d)) - cross @ step.gain.T
        bags[name] = np.block([[(own + own.T) / 2, cross], [cross.T, inner]])
    return {name: bags[name] for name in steps}


def _block(covariance, names, wanted, sizes):
    """Pick the rows and columns of some variables."""
    at = spans(names, sizes)
    index = np.concatenate([np.arange(at[name].start, at[name].stop) for name in wanted])
    return covariance[np.ix_(index, index)]


class GaussianBeliefs:
    """Keep what a Gaussian factor graph says, given evidence; made by `GaussianFactorGraph.infer`.

    Attributes
    ----------
    marginals : {variable: Moments}; what is seen has its value and no variance.
    log_partition : log of the integral of the product of all factors: of a model of conditionals, log p(evidence).
    bags : {variable: (the others of its bag, covariance of all)}, in the order of elimination; unseen entries only.
    """

    def __init__(self, graph, evidence=None, order="min-fill"):
        self.graph, self.evidence = graph, dict(evidence or {})
        self._problem = problem = Problem(graph, evidence)
        self._steps, self.log_partition = problem.eliminate(order)
        covariances = bag_covariances(self._steps, problem.sizes)
        self.bags = {name: (self._steps[name].rest, covariance) for name, covariance in covariances.items()}
        means = backward(self._steps, {name: np.zeros((1, size)) for name, size in problem.sizes.items()})
        self.marginals = {}
        for name, value in problem.values.items():
            mean, covariance, free = value.copy(), np.zeros((value.size, value.size)), problem.free[name]
            if len(free):
                mean[free] = means[name][0]
                covariance[np.ix_(free, free)] = covariances[name][: len(free), : len(free)]
            self.marginals[name] = Moments(mean, covariance)

    def __repr__(self):
        return f"<GaussianBeliefs about {len(self.marginals)} variables, log Z = {self.log_partition:.6g}>"

    def joint(self, variables):
        """Find the moments of several variables together, wherever they are in the graph."""
        variables, problem = list(variables), self._problem
        for name in variables:
            if name not in self.marginals:
                raise ValueError(f"There is no variable {name!r} in any factor.")
        if len(set(variables)) < len(variables):
            raise ValueError(f"A joint has each variable once, and {variables} repeats one.")
        at = spans(variables, self.graph.sizes)
        n = sum(self.graph.sizes[name] for name in variables)
        covariance = np.zeros((n, n))
        for name in variables:
            columns = self._columns(name)
            for other in variables:
                rows = at[other].start + problem.free[other]
                covariance[np.ix_(rows, at[name].start + problem.free[name])] = columns.get(other, np.empty((0, 0))).T
        mean = np.concatenate([self.marginals[name].mean for name in variables])
        return Moments(mean, (covariance + covariance.T) / 2)

    def _columns(self, name):
        """Solve JX = E for the columns of one variable: its covariance with every other, as rows."""
        steps, sizes = self._steps, self._problem.sizes
        if name not in sizes:
            return {other: np.zeros((0, size)) for other, size in sizes.items()}
        h = {other: np.zeros((sizes[name], size)) for other, size in sizes.items()}
        h[name] = np.eye(sizes[name])
        for other, step in steps.items():
            at = spans(step.rest, sizes)
            for far in step.rest:
                h[far] = h[far] - h[other] @ step.gain[:, at[far]]
        there = {other: step._replace(information=np.zeros(sizes[other])) for other, step in steps.items()}
        return backward(there, {other: cho_solve(steps[other].factored, h[other].T).T for other in steps})

    def sample(self, n=1, random_state=None):
        """Draw all variables n times: {variable: (n, size)}.

        Examples
        --------
        >>> graph = GaussianFactorGraph([linear_gaussian("x"), linear_gaussian("y", {"x": 1.0}, covariance=0.01)])
        >>> draws = graph.infer({"y": 3.0}).sample(4, random_state=0)
        >>> draws["x"].shape, draws["y"].ravel()
        ((4, 1), array([3., 3., 3., 3.]))
        """
        rng, problem, noise = generator(random_state), self._problem, {}
        for name, step in self._steps.items():
            white = rng.standard_normal((n, problem.sizes[name]))
            L = step.factored[0]
            noise[name] = np.linalg.solve(np.tril(L).T, white.T).T  # covariance (LLᵀ)⁻¹
        x = backward(self._steps, noise)
        draws = {}
        for name, value in problem.values.items():
            draws[name] = np.tile(value, (n, 1))
            if name in x:
                draws[name][:, problem.free[name]] = x[name]
        return draws

    def certify(self):
        """Prove the moments from the factors alone: Jμ = h, and J from the covariances of the bags."""
        return certify_moments(self)


class GaussianFactorGraph:
    """Infer normal variables from factors in information form, by messages.

    Parameters
    ----------
    factors : List of `GaussianFactor`, from (variables, J, h) or by `linear_gaussian`.

    Examples
    --------
    >>> walk = [linear_gaussian(0)]
    >>> for t in (1, 2, 3):
    ...     walk += [linear_gaussian(t, {t - 1: 1.0}), linear_gaussian(("seen", t), {t: 1.0})]
    >>> graph = GaussianFactorGraph(walk)
    >>> found = graph.infer({("seen", 1): 1.0, ("seen", 2): 2.0, ("seen", 3): 1.5})
    >>> [round(float(found.marginals[t].mean[0]), 6) for t in (1, 2, 3)]
    [1.0, 1.5, 1.5]
    >>> found.certify().kind
    'proof'
    """

    def __init__(self, factors):
        self.factors = [checked(GaussianFactor(*factor), m) for m, factor in enumerate(factors)]
        self.sizes = {}
        for factor in self.factors:
            for name, size in zip(factor.variables, factor.sizes, strict=True):
                if self.sizes.setdefault(name, size) != size:
                    raise ValueError(
                        f"The variable {name!r} has {self.sizes[name]} entries in one factor and {size} in another."
                    )
        self.variables = tuple(self.sizes)

    def infer(self, evidence=None, order="min-fill"):
        """Find the law of all variables given evidence, as `GaussianBeliefs`.

        Parameters
        ----------
        evidence : {variable: value}; NaN for an entry that is not seen.
        order : In which to integrate, as for `eliminate`.
        """
        return GaussianBeliefs(self, evidence, order)

    def marginals(self, evidence=None):
        """Find mean and covariance of every variable."""
        return self.infer(evidence).marginals

    def joint(self, variables, evidence=None):
        """Find mean and covariance of several variables together."""
        return self.infer(evidence).joint(variables)

    def pairwise(self, i, j, evidence=None):
        """Find mean and covariance of two variables together."""
        return self.infer(evidence).joint([i, j])

    def log_partition(self, evidence=None):
        """Find the logarithm of the integral of all factors, the evidence put in."""
        return self.infer(evidence).log_partition

    def sample(self, n=1, evidence=None, random_state=None):
        """Draw all variables n times: {variable: (n, size)}."""
        return self.infer(evidence).sample(n, random_state)

    def certify(self, evidence=None):
        """Prove the moments given evidence."""
        return self.infer(evidence).certify()

    def messages(self, evidence=None):
        """Send messages both ways over the edges of a tree: ({(variable, factor): q}, {(factor, variable): r}).

        A cycle is an error here; `infer` does without.

        Examples
        --------
        >>> graph = GaussianFactorGraph([linear_gaussian("x"), linear_gaussian("y", {"x": 1.0})])
        >>> q, r = graph.messages({"y": 2.0})
        >>> r[1, "x"].precision, r[1, "x"].information  # what seeing y = 2 says about x
        (array([[1.]]), array([2.]))
        """
        problem = Problem(self, evidence)
        scopes = [factor.variables for factor in problem.factors]
        edges, q, r = walk_forest(scopes, problem.sizes), {}, {}
        own = {name: [] for name in problem.sizes}
        for m, scope in enumerate(scopes):
            for name in scope:
                own[name].append(m)

        def send(m, n, to_variable):
            if to_variable:
                r[m, n] = _to_variable(problem, m, n, q)
            else:
                q[n, m] = _sum([r[other, n] for other in own[n] if other != m], problem.sizes[n])

        for m, n, outward in reversed(edges):
            send(m, n, outward)
        for m, n, outward in edges:
            send(m, n, not outward)
        return q, r


def _sum(messages, size):
    """Multiply messages about one variable: add them."""
    total = Message(np.zeros((size, size)), np.zeros(size), 0.0)
    for message in messages:
        total = Message(*(a + b for a, b in zip(total, message, strict=True)))
    return total


def _to_variable(problem, m, n, q):
    """r_{m→n}: integrate factor m times the other variables' messages over these variables."""
    factor = problem.factors[m]
    others = [name for name in factor.variables if name != n]
    told = [GaussianFactor((name,), q[name, m].precision, q[name, m].information) for name in others]
    J, h = gather([*others, n], problem.sizes, [factor, *told])
    c = factor.log_constant + sum(q[name, m].log_constant for name in others)
    if not others:
        return Message(J, h, c)
    diagonal = np.concatenate([problem.diagonal[name] for name in others])
    *_, (J, h, more) = integrate(J, h, len(diagonal), " and ".join(map(str, others)), diagonal)
    return Message(J, h, c + more)


def certify_moments(beliefs):
    """Check means, covariances and log Z against the factors; all numbers in units of 1/√J of their entry."""
    problem, bags, marginals = Problem(beliefs.graph, beliefs.evidence), beliefs.bags, beliefs.marginals
    names, sizes = list(problem.sizes), problem.sizes
    at, n = spans(names, sizes), sum(sizes.values())
    h, parts, mean = np.zeros(n), ([], [], []), np.zeros(n)
    for factor in problem.factors:
        index = _index(factor.variables, at)
        h[index] += factor.information
        _add(parts, index, factor.precision)
    J = _sparse(parts, n)
    scale = np.sqrt(np.maximum(J.diagonal(), TINY))
    J = J.multiply(1 / scale[:, None]).multiply(1 / scale[None, :]).tocsc()
    for name in names:
        mean[at[name]] = marginals[name].mean[problem.free[name]] * scale[at[name]]
    log_det, worst, apart, found = 0.0, 1.0, 0.0, ([], [], [])
    for name, (rest, covariance) in bags.items():
        index, d = _index((name, *rest), at), sizes[name]
        unit = covariance * np.outer(scale[index], scale[index])
        values = np.linalg.eigvalsh(unit)
        worst = max(worst, float(values[-1] / values[0])) if values[0] > 0 else np.inf
        for part, sign in ((slice(None), 1.0), (slice(d, None), -1.0)):
            log_det += sign * np.linalg.slogdet(unit[part, part])[1]
            _add(found, index[part], sign * np.linalg.inv(unit[part, part]))
        if rest:  # the separator is seen from the next bag as well
            onward = _block(bags[rest[0]][1], (rest[0], *bags[rest[0]][0]), rest, sizes)
            units = np.outer(scale[index[d:]], scale[index[d:]])
            apart = max(apart, length((covariance[d:, d:] - onward) * units) / max(length(onward * units), TINY))
    off = length((_sparse(found, n) - J).data) / max(length(J.data), TINY) if worst < np.inf else np.inf
    limit = min(max(SAME_LIMIT, CONDITION * worst), LOOSEST)
    step = splu(J).solve(h / scale - J @ mean) if n else mean
    wrong = max((length(step[at[v]]) / max(length(mean[at[v]]), 1.0) for v in names), default=0.0)
    terms = np.array([factor.log_constant for factor in problem.factors])
    log_z = terms.sum() + 0.5 * (h / scale @ mean + n * LOG_2PI + log_det) - np.log(scale).sum()
    error = abs(beliefs.log_partition - log_z) / max(1.0, abs(log_z))
    # Far from 0, in units of deviations, the terms of the exponent are large and cancel: c is −½ bᵀR⁻¹b of a conditional.
    canceled = np.abs(terms).sum() + np.abs(mean) @ (abs(J) @ np.abs(mean))
    digits = max(limit, CONDITION * canceled / max(1.0, abs(log_z)))
    return Certificate(
        Check("tree", _faults(bags, names), 0, "proof", "every variable is in neighboring bags, and in its own"),
        Check("means", wrong, limit, "proof", "they solve J mean = h, to this part of themselves or of a deviation"),
        Check("separators", apart, limit, "proof", "neighboring bags agree on what they share"),
        Check("covariances", off, limit, "proof", "the bags' inverses, less the separators', are J: one covariance does that"),
        same(*_marginals(problem, bags, marginals, scale, at), "marginals", "they are read in the bags, or seen"),
        Check("log partition", float(error), float(digits), "proof", "it follows from J, h and the determinants of the bags"),
        subject="Gaussian factor graph",
    )


def _add(parts, index, block):
    """Add a block to the rows, columns and entries of a sparse matrix."""
    rows, columns, entries = parts
    rows.append(np.repeat(index, len(index)))
    columns.append(np.tile(index, len(index)))
    entries.append(np.ravel(block))


def _sparse(parts, n):
    rows, columns, entries = (np.concatenate(part) if part else np.empty(0) for part in parts)
    return coo_array((entries, (rows.astype(int), columns.astype(int))), shape=(n, n)).tocsr()


def _index(names, at):
    return np.concatenate([np.arange(at[name].start, at[name].stop) for name in names]) if names else np.empty(0, dtype=int)


def _faults(bags, names):
    """Count variables without a bag, and bags that do not hang together: the next bag must come later and hold all the rest."""
    place = {name: i for i, name in enumerate(bags)}
    faults = len(set(names) ^ set(bags))
    for name, (rest, _) in bags.items():
        if rest and rest[0] in bags:
            faults += place[rest[0]] <= place[name] or not set(rest) <= {rest[0], *bags[rest[0]][0]}
    return faults


def _marginals(problem, bags, marginals, scale, at):
    """Give the covariances of all variables, and those of their bags; and what is seen, twice."""
    stored, found = [np.empty(0)], [np.empty(0)]
    for name, (mean, covariance) in marginals.items():
        free, value = problem.free[name], problem.values[name]
        truth, unit = np.zeros(covariance.shape), np.ones(len(value))
        if len(free):
            truth[np.ix_(free, free)] = bags[name][1][: len(free), : len(free)]
            unit[free] = scale[at[name]]
        seen = np.delete(np.arange(len(value)), free)
        stored += [np.ravel(covariance * np.outer(unit, unit)), mean[seen]]
        found += [np.ravel(truth * np.outer(unit, unit)), value[seen]]
    return np.concatenate(stored), np.concatenate(found)
