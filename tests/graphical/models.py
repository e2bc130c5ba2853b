"""Random models, small enough to be enumerated."""

import numpy as np

from lemmata.graphical import BayesNet, Factor, FactorGraph, enumerate_joint


def random_graph(seed, n=7, n_factors=8, most=3, zeros=0.0, log=False):
    """Make a factor graph of n variables with 1 to 3 states, with factors over up to three of them, perhaps unconnected."""
    rng = np.random.default_rng(seed)
    sizes = {f"v{i}": int(rng.integers(1, most + 1)) for i in range(n)}
    alive = {name: int(rng.integers(size)) for name, size in sizes.items()}  # a state that no zero excludes
    factors = []
    for _ in range(n_factors):
        scope = rng.choice(list(sizes), size=rng.integers(1, 4), replace=False).tolist()
        values = rng.gamma(0.7, size=[sizes[name] for name in scope]) + 1e-3
        dead = rng.random(values.shape) < zeros
        dead[tuple(alive[name] for name in scope)] = False
        values[dead] = 0.0
        factors.append(Factor(scope, np.log(values) if log else values, log=log))
    return FactorGraph(factors, {name: tuple(f"s{k}" for k in range(size)) for name, size in sizes.items()})


def random_net(seed, n=7, most=3):
    """Make a Bayes net of n variables, each with up to three parents among those before it, in a shuffled order."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in rng.permutation(n)]
    sizes = {name: int(rng.integers(2, most + 1)) for name in names}
    parents = {
        name: rng.choice(names[:i], size=min(i, rng.integers(0, 4)), replace=False).tolist() for i, name in enumerate(names)
    }
    tables = {name: rng.dirichlet(np.ones(sizes[name]), size=[sizes[p] for p in parents[name]]) for name in names}
    shuffled = rng.permutation(names).tolist()
    return BayesNet({name: parents[name] for name in shuffled}, tables)


def brute_joint(model, evidence=None):
    """Enumerate P(all variables, evidence) as an array with an axis for each variable, not normalized."""
    free = [Factor([name], np.ones(len(states))) for name, states in model.states.items()]  # a variable may have no factor
    joint = enumerate_joint([*model.factors, *free], model.variables).as_linear().values
    for name, value in (evidence or {}).items():
        axis = model.variables.index(name)
        weights = (
            np.asarray(value, dtype=float)
            if isinstance(value, list)
            else np.arange(joint.shape[axis]) == model._code(name, value)
        )
        joint = joint * np.expand_dims(weights, [a for a in range(joint.ndim) if a != axis])
    return joint


def brute_marginal(model, variables, evidence=None):
    """Give the normalized marginal over variables, axes in their order, by enumeration."""
    joint = brute_joint(model, evidence)
    keep = [model.variables.index(name) for name in variables]
    summed = joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in keep))
    return summed.transpose(np.argsort(np.argsort(keep))) / joint.sum()


def random_evidence(model, seed, n=2):
    """Observe variables at states of positive probability, and one of them softly."""
    rng = np.random.default_rng(seed)
    joint = brute_joint(model)
    state = np.unravel_index(rng.choice(joint.size, p=joint.ravel() / joint.sum()), joint.shape)
    chosen = rng.choice(len(model.variables), size=n + 1, replace=False)
    evidence = {model.variables[i]: model.states[model.variables[i]][state[i]] for i in chosen[:n]}
    name = model.variables[chosen[n]]
    return {**evidence, name: (rng.random(len(model.states[name])) + 0.1).tolist()}
