"""Variable elimination: one query, with all that cannot matter for it left out.

A barren node of a Bayes net, which is neither asked for nor known nor an ancestor of such a one, has a table that sums to one
and is dropped before anything is multiplied. What is known is clamped, which cuts tables down and arrows off. The rest is
eliminated in a greedy order.
"""

import numpy as np

from lemmata.graphical.arrows import ancestors
from lemmata.graphical.elimination import eliminate
from lemmata.graphical.factor import Factor


def query(model, variables, evidence=None):
    """Give the joint distribution of variables given evidence, as a `Factor` that sums to one.

    Examples
    --------
    >>> from lemmata.graphical import BayesNet
    >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
    >>> query(net, ["rain"], {"wet": 1}).values.round(4)
    array([0.2963, 0.7037])
    """
    from lemmata.graphical.junction_tree import ImpossibleEvidence
    from lemmata.graphical.model import encode_evidence

    numbers, starts, likelihood = encode_evidence(model, evidence)
    known = {
        model.variables[v]: likelihood[a:b] for v, a, b in zip(numbers, starts[:-1], starts[1:], strict=True)
    }  # by name: likelihoods of its states
    factors = relevant_factors(model, set(variables) | set(known))
    factors += [Factor([name], values) for name, values in known.items()]
    fixed = {
        name: int(np.argmax(values))
        for name, values in known.items()
        if name not in variables and np.count_nonzero(values) == 1
    }
    factors = [factor.given(fixed) for factor in factors]
    missing = [name for name in variables if not any(name in factor.variables for factor in factors)]
    factors += [Factor([name], np.ones(len(model.states[name]))) for name in missing]
    for name in elimination_order(factors, set(variables)):
        touching = [factor for factor in factors if name in factor.variables]
        factors = [factor for factor in factors if name not in factor.variables]
        factors.append(scaled(summed_out(touching, name)))
    result = product(factors)
    if not np.isfinite(result.total()):
        raise ImpossibleEvidence("The evidence has probability zero.")
    return result.marginal(variables).normalized().as_linear()


def relevant_factors(model, wanted):
    """Give the factors of a model that can matter: of a Bayes net, those of the wanted variables and their ancestors."""
    parents = getattr(model, "parents_", None)
    if parents is None:
        return list(model.factors)
    kept = ancestors(parents, wanted)
    return [factor for name, factor in zip(model.variables, model.factors, strict=True) if name in kept]


def elimination_order(factors, keep):
    """Order the variables that are not kept, by weighted min-fill."""
    graph = {}
    for factor in factors:
        for name in factor.variables:
            graph.setdefault(name, set()).update(factor.variables)
    states = {name: size for factor in factors for name, size in zip(factor.variables, factor.shape, strict=True)}
    return [name for name in eliminate(graph, "weighted-min-fill", states=states).order if name not in keep] if graph else []


def product(factors):
    """Multiply factors, small ones first."""
    result = Factor((), 1.0)
    for factor in sorted(factors, key=lambda factor: factor.values.size):
        result = result * factor
    return result


def summed_out(factors, name):
    """Multiply factors and sum over a variable."""
    joint = product(factors)
    return joint.marginal([other for other in joint.variables if other != name])


def scaled(factor):
    """Divide by the largest value, so that long products stay in range."""
    peak = factor.values.max()
    if factor.log or not peak > 0:
        return factor
    return Factor(factor.variables, factor.values / peak)
