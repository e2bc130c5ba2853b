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
from scipy.linalg import cho_solve

from lemmata.core.random import generator
from lemmata.graphical.gaussian_certificate import certify_moments
from lemmata.graphical.gaussian_factor import (
    GaussianFactor,
    Problem,
    block_of,
    checked,
    gather,
    integrate,
    spans,
)
from lemmata.graphical.sum_product import walk_forest


class Moments(NamedTuple):
    """Mean and covariance of a normal law."""

    mean: np.ndarray
    covariance: np.ndarray


class Message(NamedTuple):
    """A message over one edge of a tree: exp(c − ½ xᵀJx + hᵀx) of one variable."""

    precision: np.ndarray
    information: np.ndarray
    log_constant: float


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
            block_of(bags[step.rest[0]], (step.rest[0], *steps[step.rest[0]].rest), step.rest, sizes)
            if step.rest
            else np.empty((0, 0))
        )
        cross = -step.gain @ inner
        own = cho_solve(step.factored, np.eye(d)) - cross @ step.gain.T
        bags[name] = np.block([[(own + own.T) / 2, cross], [cross.T, inner]])
    return {name: bags[name] for name in steps}


class GaussianBeliefs:
    """Keep what a Gaussian factor graph says, given evidence; made by `GaussianFactorGraph.infer`.

    Attributes
    ----------
    marginals : {variable: Moments}; what is seen has its value and no variance.
    log_partition : log of the integral of the product of all factors: of a model of conditionals, log p(evidence).
    bags : {variable: (the others of its bag, covariance of all)}, in the order of elimination; unseen entries only.

    Examples
    --------
    >>> from lemmata.graphical import GaussianFactorGraph, linear_gaussian
    >>> found = GaussianFactorGraph([linear_gaussian("x"), linear_gaussian("y", {"x": 1.0})]).infer({"y": 2.0})
    >>> found.marginals["x"]
    Moments(mean=array([1.]), covariance=array([[0.5]]))
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
        if not variables:
            raise ValueError("A joint needs at least one variable.")
        if len(set(variables)) < len(variables):
            raise ValueError(f"A joint has each variable once, and {variables} repeats one.")
        at = spans(variables, self.graph.sizes)
        n = sum(self.graph.sizes[name] for name in variables)
        covariance = np.zeros((n, n))
        uncertain = [name for name in variables if name in problem.sizes]
        for name in uncertain:
            columns = self._columns(name)
            for other in uncertain:
                rows = at[other].start + problem.free[other]
                covariance[np.ix_(rows, at[name].start + problem.free[name])] = columns[other].T
        mean = np.concatenate([self.marginals[name].mean for name in variables])
        return Moments(mean, (covariance + covariance.T) / 2)

    def _columns(self, name):
        """Solve JX = E for the columns of one variable: its covariance with every other, as rows."""
        steps, sizes = self._steps, self._problem.sizes
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
        >>> from lemmata.graphical import linear_gaussian
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
    >>> from lemmata.graphical import linear_gaussian
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
        >>> from lemmata.graphical import linear_gaussian
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
