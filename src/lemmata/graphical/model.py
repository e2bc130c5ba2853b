"""What all discrete models can be asked: marginals, maxima, draws, given evidence.

Evidence is {variable: what is known}: the label of a state; or its number, where no label is a number; or, as soft evidence, a
list with the likelihood of each state, such as [0.9, 0.2] for a sensor that reports so. Answers come in the order of the
states. The first question compiles a junction tree, the others use it. Where its tables are large, what is known for certain
is put into the factors first: that cuts the graph, and the tree of what is left may be so much smaller that to compile it, for
this one question, is the shorter way.
"""

from contextlib import suppress
from functools import cached_property

import numpy as np

from lemmata.core.config import whole
from lemmata.core.random import generator
from lemmata.graphical.evidence import code_of, encode_evidence, is_soft, labels, some
from lemmata.graphical.factor import lay_out
from lemmata.graphical.junction_tree import ImpossibleEvidence, JunctionTree

LARGE = 1 << 20  # entries of a junction tree from which evidence may be worth a tree of its own
WORTH = 4  # times smaller it must be: compiling costs as much as some queries
TRIES = 12  # orders that are tried for it


class Assignment(dict):
    """{variable: label of its state}, with `log_value`, the logarithm of the product of all factors there."""

    log_value: float

    def __init__(self, states, log_value):
        super().__init__(states)
        self.log_value = log_value


class DiscreteModel:
    """Answer questions about a product of factors. A model has `variables`, `states` and `factors`."""

    _memo = ("layout", "_codes", "_trees")  # what is made from these when first asked for

    @cached_property
    def layout(self):
        """The factors as flat arrays."""
        numbers = {name: i for i, name in enumerate(self.variables)}
        return lay_out(self.factors, numbers, [len(self.states[name]) for name in self.variables])

    @cached_property
    def _codes(self):
        """For each variable its number, the numbers of its labels, how many, and how many may be meant by number."""
        codes = {}
        for i, name in enumerate(self.variables):
            states = self.states[name]
            plain = not any(isinstance(label, (int, float, np.number)) for label in states)
            codes[name] = i, {label: k for k, label in enumerate(states)}, len(states), len(states) if plain else 0
        return codes

    @cached_property
    def _trees(self):
        return {}

    def __setattr__(self, name, value):
        for made in self._memo:  # what was compiled may be of something else now
            self.__dict__.pop(made, None)
        super().__setattr__(name, value)

    def __getstate__(self):
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key not in self._memo}

    def compile(self, order="auto", *, restarts=None, max_entries=None, random_state=0):
        """Compile the junction tree that answers all questions from now on; return the model.

        Parameters
        ----------
        order, restarts, max_entries, random_state : As for `JunctionTree`. More restarts pay where many queries follow.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> model.compile(order=["a", "b", "c"]).junction_tree().cliques
        [('a', 'b'), ('b', 'c')]
        """
        room = {} if max_entries is None else {"max_entries": max_entries}
        self._trees[None] = JunctionTree(self, order, restarts=restarts, random_state=random_state, **room)
        return self

    def junction_tree(self):
        """Give the compiled junction tree."""
        tree = self._trees.get(None)
        if tree is None:
            self.compile()
            tree = self._trees[None]
        return tree

    def marginals(self, evidence=None):
        """Give {variable: probabilities of its states} given evidence.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> model.marginals({"c": 0})["a"]
        array([0.6364, 0.3636])
        >>> model.marginals({"c": [1.0, 1.0]})["a"]  # evidence that says nothing
        array([0.5185, 0.4815])
        """
        tree, left, fixed = self._tree_for(evidence)
        found = self._asked(tree.marginals, left, evidence)
        if not fixed:
            return found
        return {name: np.eye(len(self.states[name]))[fixed[name]] if name in fixed else found[name] for name in self.variables}

    def _tree_for(self, evidence):
        """Give a tree to ask, the evidence to ask it with, and the numbers of the states that are built into it."""
        tree = self.junction_tree()
        if not evidence or tree.n_entries < LARGE:
            return tree, evidence, {}
        from lemmata.graphical.factor_graph import FactorGraph

        encode_evidence(self, evidence)  # refuses what makes no sense
        fixed = {name: self._code(name, value) for name, value in evidence.items() if not is_soft(value)}
        rest = {name: self.states[name] for name in self.variables if name not in fixed}
        left = {name: value for name, value in evidence.items() if name not in fixed}
        if fixed and rest:
            with suppress(ValueError):  # larger than that
                graph = FactorGraph([factor.given(fixed) for factor in self.factors], rest)
                return JunctionTree(graph, restarts=TRIES, max_entries=tree.n_entries // WORTH), left, fixed
        return tree, evidence, {}

    def _asked(self, ask, left, evidence):
        """Ask a tree; where it has no answer, say which evidence contradicts which, built in or not."""
        try:
            return ask(left)
        except ImpossibleEvidence:
            raise ImpossibleEvidence(self.junction_tree()._contradiction(evidence)) from None

    def joint(self, variables, evidence=None):
        """Give the joint distribution of a few variables given evidence: an array with an axis for each.

        Variables of one clique are read off the junction tree, once that is compiled. Others are found by eliminating the rest
        of the model, without the barren nodes of a Bayes net.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> (27 * model.joint(["a", "c"])).round()
        array([[7., 7.],
               [4., 9.]])
        """
        from lemmata.graphical.variable_elimination import query

        variables = self._known(variables)
        tree = self._trees.get(None)
        held = tree.joint(variables, evidence) if tree is not None and not set(variables) & set(evidence or {}) else None
        return (query(self, variables, evidence) if held is None else held).values

    def pairwise(self, i, j, evidence=None):
        """Give the joint distribution of two variables given evidence: states of i × states of j."""
        return self.joint([i, j], evidence)

    def map(self, evidence=None):
        """Give the most probable state of all variables together, given evidence, by max-sum: {variable: label}.

        The result has `log_value`, the logarithm of the product of all factors there. Among equally probable assignments the
        one is given that takes, clique by clique from the roots of the junction tree, the first state: always the same for the
        same model and evidence.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> best = model.map()
        >>> best, float(np.exp(best.log_value))
        ({'a': 1, 'b': 1, 'c': 1}, 8.0)
        """
        tree, left, fixed = self._tree_for(evidence)
        states, value = self._asked(tree.most_probable, left, evidence)
        codes = dict(zip(tree.variables, states, strict=True)) | fixed
        return Assignment({name: self.states[name][codes[name]] for name in self.variables}, value)

    def log_partition(self, evidence=None):
        """Give log Σ Π factors over all states that agree with the evidence; of a Bayes net, log P(evidence).

        Impossible evidence gives -inf here, and an error elsewhere.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> float(np.exp(model.log_partition())), float(np.exp(model.log_partition({"c": 0})))
        (27.0, 11.0)
        """
        tree, left, _ = self._tree_for(evidence)
        return tree.log_partition(left)

    def sample(self, n=1, evidence=None, random_state=None):
        """Draw n independent states of all variables, given evidence: {variable: array of labels}.

        Examples
        --------
        >>> from lemmata.graphical import FactorGraph, Factor
        >>> model = FactorGraph([Factor("ab", [[3, 1], [1, 2]]), Factor("bc", [[2, 1], [1, 4]])])
        >>> drawn = model.sample(1000, {"c": 0}, random_state=0)
        >>> float(drawn["a"].mean().round(2)), int(drawn["c"].max())
        (0.37, 0)
        """
        tree, left, fixed = self._tree_for(evidence)
        n, rng = whole("n", n), generator(random_state)
        states = self._asked(lambda known: tree.sample(n, rng, known), left, evidence)
        codes = dict(zip(tree.variables, states.T, strict=True)) | {name: np.full(n, code) for name, code in fixed.items()}
        return {name: labels(self.states[name])[codes[name]] for name in self.variables}

    def log_value(self, assignment):
        """Give the logarithm of the product of all factors at a state of all variables: {variable: label}."""
        codes = {name: self._code(name, assignment[name]) for name in self._whole(assignment)}
        return float(sum(factor.as_log().given(codes).values for factor in self.factors))

    def _known(self, variables):
        """Check names of variables, one or several, all different; give them as a tuple."""
        variables = (variables,) if isinstance(variables, str) else tuple(variables)
        for name in variables:
            if name not in self._codes:
                raise ValueError(f"There is no variable {name!r} here; there are {some(self._codes)}.")
        if not variables or len(set(variables)) < len(variables):
            raise ValueError(f"Name at least one variable, and each once, got {list(variables)}.")
        return variables

    def _whole(self, assignment):
        """Check that an assignment has a state for every variable; give the variables."""
        missing = [name for name in self.variables if name not in assignment]
        if missing:
            raise ValueError(f"An assignment needs a state for every variable; there is none for {some(missing)}.")
        return self.variables

    def _code(self, name, value):
        """Give the number of a state."""
        _, labels, _, most = self._codes[name]
        return code_of(name, value, labels, most)
