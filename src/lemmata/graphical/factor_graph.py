"""`FactorGraph`: any product of factors, normalized: P(x) = (1/Z) Π f_m(x_m)."""

from importlib import import_module

from lemmata.graphical.evidence import some
from lemmata.graphical.factor import Factor
from lemmata.graphical.model import DiscreteModel


class FactorGraph(DiscreteModel):
    """Describe a distribution by factors: tables over a few variables each, whose product it is proportional to.

    Parameters
    ----------
    factors : List of `Factor`, or of pairs (variables, table).
    state_names : {variable: labels of its states}; default 0, 1, … . Variables named here that no factor has are uniform.

    Attributes
    ----------
    variables : Names, in the order in which the factors name them.
    states : {variable: labels}.
    factors : The factors.

    Examples
    --------
    >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])], {"a": ["no", "yes"]})
    >>> graph.marginals()["a"] * 27
    array([14., 13.])
    >>> graph.map()["a"]
    'yes'
    """

    def __init__(self, factors, state_names=None):
        self.factors = [factor if isinstance(factor, Factor) else Factor(*factor) for factor in factors]
        given = {name: tuple(labels) for name, labels in (state_names or {}).items()}
        sizes = {}
        for factor in self.factors:
            for name, size in zip(factor.variables, factor.shape, strict=True):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"The variable {name!r} has {sizes[name]} states in one factor and {size} in another.")
        for name, labels in given.items():
            if sizes.setdefault(name, len(labels)) != len(labels):
                raise ValueError(f"The variable {name!r} has {sizes[name]} states and {len(labels)} labels.")
            check_labels(name, labels)
        if not sizes:
            raise ValueError("A factor graph needs at least one variable.")
        self.variables = tuple(sizes)
        self.states = {name: given.get(name, tuple(range(size))) for name, size in sizes.items()}

    def __repr__(self):
        return f"<FactorGraph of {len(self.variables)} variables ({some(self.variables, 4)}) and {len(self.factors)} factors>"

    def plot(self, evidence=None, *, ax=None):
        """Draw variables and factors; return the display (see `lemmata.plot.NetworkDisplay`)."""
        return import_module("lemmata.plot").NetworkDisplay.from_estimator(self, evidence=evidence, ax=ax)

    def certify(self, evidence=None, assignment=None):
        """Prove, from the factors alone, that the answers given this evidence are exact.

        Parameters
        ----------
        evidence : What is known.
        assignment : What `map` gave, to be proved the most probable.

        Examples
        --------
        >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
        >>> print(graph.certify(assignment=graph.map()))
        <JunctionTree of 2 cliques, width 1, 8 entries>: certificate holds (proof)
          check         value     limit  kind   claim
          cover         0.0e+00 ≤ 0e+00  proof  every factor lies in a clique
          intersection  0.0e+00 ≤ 0e+00  proof  a variable's cliques hang together
          product       ...     ≤ 1e-09  proof  beliefs give the product of factors
          separators    ...     ≤ 1e-09  proof  neighboring cliques agree on what they share
          partition     ...     ≤ 1e-09  proof  every clique has the same partition function, which is the one given
          marginals     ...     ≤ 1e-09  proof  the answer for a variable is that of every clique with it
          map           ...     ≤ 1e-09  proof  no assignment is more probable: a bound of all is reached
        """
        return self.junction_tree().certify(evidence, assignment)


def check_labels(name, labels):
    """Refuse labels that are none or not all different."""
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"The states of {name!r} need labels that are all different, got {list(labels)}.")
