"""Variable elimination: one query, with all that cannot matter for it left out.

A barren node of a Bayes net, which is neither asked for nor known nor an ancestor of such a one, has a table that sums to one
and is dropped before anything is multiplied. What is known is clamped, which cuts tables down and arrows off. The rest is
eliminated in a greedy order.
"""

from itertools import count
from math import prod

import numpy as np

from lemmata.graphical.arrows import ancestors
from lemmata.graphical.elimination import eliminate
from lemmata.graphical.evidence import encode_evidence
from lemmata.graphical.factor import Factor
from lemmata.graphical.junction_tree import MOST_ENTRIES, ImpossibleEvidence
from lemmata.graphical.tree_messages import STRAIN


def query(model, variables, evidence=None):
    """Give the joint distribution of variables given evidence, as a `Factor` that sums to one.

    Examples
    --------
    >>> from lemmata.graphical import BayesNet
    >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
    >>> query(net, ["rain"], {"wet": 1}).values.round(4)
    array([0.2963, 0.7037])
    """
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
    result = product(eliminated(factors, elimination_order(factors, set(variables))))
    if not np.isfinite(result.total()):
        raise ImpossibleEvidence("The evidence has probability zero.")
    return result.marginal(variables).normalized().as_linear()


def eliminated(factors, order):
    """Sum variables out one after another: multiply the factors that have it, and put the sum in their place."""
    left, holders, numbers = dict(enumerate(factors)), {}, count(len(factors))
    for k, factor in left.items():
        for name in factor.variables:
            holders.setdefault(name, set()).add(k)
    for name in order:
        touching = sorted(holders.pop(name))
        joint = product([left.pop(k) for k in touching])
        made, number = joint.marginal([other for other in joint.variables if other != name]), next(numbers)
        left[number] = made
        for other in made.variables:
            holders[other].difference_update(touching)
            holders[other].add(number)
    return list(left.values())


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
    """Multiply factors, small ones first, the largest value of each being 1; in logarithms where values lie far apart."""
    sizes = {name: size for factor in factors for name, size in zip(factor.variables, factor.shape, strict=True)}
    if prod(sizes.values()) > MOST_ENTRIES:
        raise ValueError(
            f"To answer this, a table of {prod(sizes.values()):.2g} entries over {len(sizes)} variables would be needed: "
            "ask for fewer variables, or know more."
        )
    far = sum(factor.strain() for factor in factors) > STRAIN
    result = Factor((), 0.0 if far else 1.0, log=far)
    for factor in sorted(factors, key=lambda factor: factor.values.size):
        result = result * scaled(factor.as_log() if far else factor)
    return result


def scaled(factor):
    """Divide by the largest value."""
    peak = factor.values.max()
    if factor.log:
        return Factor(factor.variables, factor.values - peak, log=True) if np.isfinite(peak) else factor
    return Factor(factor.variables, factor.values / peak) if peak > 0 else factor
