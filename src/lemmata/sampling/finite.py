"""Samplers on finite spaces, as the exact matrices that they are.

On few states the kernel of a sampler can be written down: T[x, y] is the chance to go from x to y in a step (rows sum to one,
as everywhere in `lemmata.markov`). Metropolis-Hastings with proposals Q has

    T[x, y] = Q[x, y] min {1, P(y) Q[y, x] / (P(x) Q[x, y])}  for y ≠ x,      T[x, x] = 1 − Σ_{y≠x} T[x, y],

the last of which holds Q[x, x] and all that was rejected. Drawing a part of a point anew given the rest is a matrix, too; a
sweep is the product of these in order, and a random scan is their mean. Then no statistics are needed: that P is stationary,
Σ_x P(x) T[x, y] = P(y), and that there is detailed balance, P(x) T[x, y] = P(y) T[y, x], are sums over the table.
"""

from functools import reduce

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.markov import MarkovChain
from lemmata.sampling.chains import scanning

LIMIT = 1e-9  # of sums of products of probabilities, whose rounding is far below


def transition_matrix(kernel, states, scan="systematic"):
    """Write down the transition matrix of a sampler by asking it for the law of the next state, from every state.

    Parameters
    ----------
    kernel : Function of a state that gives the law of the next: a dict {state: chance} or chances in the order of the states.
        Several such functions, as a list, are the steps of a sweep.
    states : The states, in the order of rows and columns: anything that can be the key of a dict.
    scan : How several steps make a sweep: "systematic", one after another, or "random", one of them at random.

    Examples
    --------
    >>> transition_matrix(lambda x: {(x + 1) % 3: 0.5, x: 0.5}, range(3))
    array([[0.5, 0.5, 0. ],
           [0. , 0.5, 0.5],
           [0.5, 0. , 0.5]])
    """
    states = list(states)
    if not states:
        raise ValueError("There must be at least one state.")
    number = {state: i for i, state in enumerate(states)}
    if len(number) < len(states):
        raise ValueError("The states must all be different.")
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    if not kernels or not all(map(callable, kernels)):
        raise ValueError("kernel must be a function of a state, or a list of at least one.")
    return _scanned([_one_matrix(step, states, number) for step in kernels], scan)


def _one_matrix(step, states, number):
    T = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        law = step(state)
        if isinstance(law, dict):
            for other, chance in law.items():
                if other not in number:
                    raise ValueError(f"From {state!r} the kernel goes to {other!r}, which is not one of the states.")
                T[i, number[other]] += chance
        else:
            T[i] = law
    _check_rows(T, "The kernel")
    return T


def _check_rows(T, what):
    if T.ndim != 2 or T.shape[0] != T.shape[1] or not (T >= 0).all() or not np.allclose(T.sum(axis=1), 1.0, atol=LIMIT):
        raise ValueError(f"{what} must have chances that are not negative and add up to one, from every state.")


def _scanned(matrices, scan):
    """Make one matrix of the steps of a sweep."""
    return np.mean(matrices, axis=0) if scanning(scan) else reduce(np.matmul, matrices)


def metropolis_matrix(target, proposal):
    """Write down Metropolis-Hastings, with what is rejected on the diagonal.

    Parameters
    ----------
    target : (n,), masses of the states, up to a factor.
    proposal : (n, n), chances to propose a state (column) from another (row).

    Examples
    --------
    >>> metropolis_matrix([0.2, 0.3, 0.5], [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]) * 6
    array([[0. , 3. , 3. ],
           [2. , 1. , 3. ],
           [1.2, 1.8, 3. ]])
    """
    p, Q = _masses(target).ravel(), np.asarray(proposal, dtype=float)
    _check_rows(Q, "proposal")
    if len(p) != len(Q):
        raise ValueError(f"target has {len(p)} states and proposal has {len(Q)}; they must be the same.")
    flow = p[:, None] * Q
    least = np.minimum(flow, flow.T)  # P(x) Q(y; x) A: the smaller of the flows there and back
    T = np.divide(least, p[:, None], out=Q.copy(), where=p[:, None] > 0)  # from where there is no mass, every move is accepted
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, np.maximum(1.0 - T.sum(axis=1), 0.0))
    return T


def gibbs_matrix(joint, blocks=None, scan="systematic"):
    """Write down Gibbs sampling; states are numbered in C order of the table.

    Parameters
    ----------
    joint : Table of masses with an axis for each variable, up to a factor.
    blocks : Variables (numbers of axes) that are drawn together: a list of lists. Default: each alone.
    scan : "systematic": the blocks in order. "random": one of them at random.

    Examples
    --------
    >>> gibbs_matrix([[0.4, 0.1], [0.1, 0.4]], scan="random")
    array([[0.8, 0.1, 0.1, 0. ],
           [0.4, 0.2, 0. , 0.4],
           [0.4, 0. , 0.2, 0.4],
           [0. , 0.1, 0.1, 0.8]])
    """
    p = _masses(joint)
    parts = [[axis] for axis in range(p.ndim)] if blocks is None else [np.atleast_1d(block).tolist() for block in blocks]
    if not parts:
        raise ValueError("There must be at least one block.")
    for axis in (axis for part in parts for axis in part):
        if axis not in range(p.ndim):
            raise ValueError(f"A block names the axis {axis!r}; the table has the axes 0 to {p.ndim - 1}.")
    return _scanned([conditional_matrix(p, part) for part in parts], scan)


def conditional_matrix(joint, block):
    """Write down the step that draws some variables anew, given the others.

    Examples
    --------
    >>> conditional_matrix(np.array([[0.4, 0.1], [0.1, 0.4]]), [0])
    array([[0.8, 0. , 0.2, 0. ],
           [0. , 0.2, 0. , 0.8],
           [0.8, 0. , 0.2, 0. ],
           [0. , 0.2, 0. , 0.8]])
    """
    p = _masses(joint)
    rest = [axis for axis in range(p.ndim) if axis not in block]
    where = np.indices(p.shape).reshape(p.ndim, -1)
    same = (where[rest][:, :, None] == where[rest][:, None, :]).all(axis=0)  # states that differ in the block alone
    flow = np.where(same, p.ravel()[None, :], 0.0)
    total = flow.sum(axis=1, keepdims=True)
    return np.divide(flow, total, out=np.eye(p.size), where=total > 0)  # where all have no mass, nothing moves


def _masses(target):
    p = np.asarray(target, dtype=float)
    if p.size == 0 or not np.isfinite(p).all() or (p < 0).any() or not p.any():
        raise ValueError("The masses of the target must be finite, not negative, and not all zero.")
    return p / p.sum()


def stationarity(transition, target):
    """Prove that a target is stationary under a transition matrix, and that the chain converges to it from everywhere.

    Examples
    --------
    >>> p = [0.2, 0.3, 0.5]
    >>> print(stationarity(metropolis_matrix(p, np.full((3, 3), 1 / 3)), p))
    certificate holds (proof)
      check       value     limit  kind   claim
      rows        0.0e+00 ≤ 1e-09  proof  chances are not negative and add up to one
      stationary  0.0e+00 ≤ 1e-09  proof  Σ |Σₓ P(x) T[x, y] − P(y)|: a step leaves the target as it is
      ergodic     0.0e+00 ≤ 0e+00  proof  irreducible and aperiodic: the chain converges to the target from everywhere
    """
    T, p = _given(transition, target)
    off = float(np.abs(p @ T - p).sum())
    converges = np.inf
    if (rows := _rows(T)).holds:
        chain = MarkovChain(T / T.sum(axis=1, keepdims=True))
        mass = p > 0  # states without mass need not be reached; they must be left
        found = chain.classes()
        one = len(np.unique(found.label[mass])) == 1 and int(found.recurrent.sum()) == 1
        converges = 0.0 if one and chain.is_aperiodic else 1.0
    claim = "irreducible and aperiodic: the chain converges to the target from everywhere"
    return Certificate(
        rows,
        Check("stationary", off, LIMIT, "proof", "Σ |Σₓ P(x) T[x, y] − P(y)|: a step leaves the target as it is"),
        Check("ergodic", converges, 0.0, "proof", claim),
    )


def detailed_balance(transition, target):
    """Prove detailed balance of a target under a transition matrix; it implies that the target is stationary.

    Examples
    --------
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> detailed_balance(gibbs_matrix(joint, scan="random"), joint).holds
    True
    >>> detailed_balance(gibbs_matrix(joint), joint).holds  # a sweep in order leaves the target as it is, without balance
    False
    """
    T, p = _given(transition, target)
    rows = _rows(T)
    off = MarkovChain(T).detailed_balance(p).violation if rows.holds else np.inf
    claim = "Σ |P(x) T[x, y] − P(y) T[y, x]| / 2: as many moves there as back, so the target is stationary"
    return Certificate(rows, Check("balance", off, LIMIT, "proof", claim))


def _given(transition, target):
    T, p = np.asarray(transition, dtype=float), _masses(target).ravel()
    if T.shape != (len(p), len(p)):
        raise ValueError(f"transition must have the shape {(len(p), len(p))} for {len(p)} states, got {T.shape}.")
    return T, p


def _rows(T):
    off = float(np.abs(T.sum(axis=1) - 1).max() - min(T.min(), 0.0))
    return Check("rows", off, LIMIT, "proof", "chances are not negative and add up to one")
