"""Where a chain ends, and how long it takes.

Order the states so that those of recurrent classes come last: the transient ones move among themselves by A and leave by B.
Then Aᵗ → 0, the walk ends in the classes with chances X = (I − A)⁻¹B, and takes (I − A)⁻¹1 steps until it is there. It ends
in an absorbing state for certain only from states from which no other recurrent class can be reached: that there is an
absorbing state somewhere does not do. From the others the chances are right all the same, but they do not add up to one, and
the steps are infinite.

Up to `ELIMINATED` transient states this is done by elimination without subtractions; beyond, by sweeps X ← AX + B over the
states and over groups of them, as a preconditioner of GMRES.
Certificate: for few states elimination in the opposite order, right in every entry as well, gives the same. For many, a bound:
(I − A)⁻¹ has no negative entry, so with v − Av ≥ c > 0 its rows sum to at most v/c, and no entry of X is further from the truth
than max v/c times the largest entry of X − AX − B. The computed steps serve as v; they are then right up to a share of
max |v − Av − 1| / c.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.certificate import SAME_LIMIT, Check
from lemmata.markov.classes import reaching
from lemmata.markov.elimination import reduced_absorption
from lemmata.markov.stationary import ELIMINATED
from lemmata.markov.transient import large_absorption


class Absorption(NamedTuple):
    """How a chain ends from each state.

    Examples
    --------
    >>> from lemmata.markov.classes import classes_of
    >>> P = csr_array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    >>> found = settle(P, classes_of(P))
    >>> found.probabilities[1], found.steps
    (array([0.5, 0.5]), array([0., 1., 0.]))
    """

    ends: list  # what the columns of `probabilities` stand for: absorbing states, or the states of each recurrent class
    probabilities: np.ndarray  # (states, ends)
    steps: np.ndarray  # (states,), expected number until the end; infinite where it is not certain
    certain: np.ndarray  # (states,), whether the walk ends there with probability one


def split(P, classes):
    """Give the transient states, their moves among themselves, and their moves into each recurrent class."""
    transient = np.flatnonzero(~classes.recurrent[classes.label])
    number = np.cumsum(classes.recurrent) - 1
    closed = np.flatnonzero(classes.recurrent[classes.label])
    belongs = csr_array(
        (np.ones(len(closed)), (closed, number[classes.label[closed]])), shape=(P.shape[0], int(classes.recurrent.sum()))
    )
    rows = csr_array(P[transient])
    return transient, csr_array(rows[:, transient]), (rows @ belongs).toarray()


def settle(P, classes):
    """Find the chances of ending in each recurrent class, and the expected steps until the chain is in one."""
    transient, A, B = split(P, classes)
    closed = classes.recurrent[classes.label]
    probabilities = np.zeros((P.shape[0], B.shape[1]))
    number = np.cumsum(classes.recurrent) - 1
    probabilities[closed, number[classes.label[closed]]] = 1.0
    steps = np.zeros(P.shape[0])
    if len(transient):
        if len(transient) <= ELIMINATED:
            X, cost = B, np.ones(len(transient))
            reduced_absorption(A.toarray(), X, cost)
        else:
            X, cost = large_absorption(A, B)
        probabilities[transient], steps[transient] = X, cost
    groups = [members for members, end in zip(classes.groups, classes.recurrent, strict=True) if end]
    return Absorption(groups, probabilities, steps, np.ones(P.shape[0], dtype=bool))


def absorb(P, classes, absorbing):
    """Keep the ends that are absorbing states: where another end can be reached, absorption is not certain."""
    found = settle(P, classes)
    wanted = np.array([len(members) == 1 and bool(absorbing[members[0]]) for members in found.ends], dtype=bool)
    elsewhere = np.zeros(P.shape[0], dtype=bool)
    for members, keep in zip(found.ends, wanted, strict=True):
        elsewhere[members] |= not keep
    back = csr_array(P.T.tocsr())
    certain = ~reaching(back.indptr, back.indices, elsewhere)
    states = [int(members[0]) for members, keep in zip(found.ends, wanted, strict=True) if keep]
    return Absorption(states, found.probabilities[:, wanted], np.where(certain, found.steps, np.inf), certain)


def absorption_checks(P, classes, found):
    """Check that the chances of the ends are what one step makes of them, and bound their error.

    Examples
    --------
    >>> from lemmata.markov.classes import classes_of
    >>> P = csr_array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    >>> all(check.holds for check in absorption_checks(P, classes_of(P), settle(P, classes_of(P))))
    True
    """
    transient, A, B = split(P, classes)
    X, steps, n = found.probabilities[transient], found.steps[transient], len(transient)
    sums = float(np.abs(found.probabilities.sum(axis=1) - 1).max())
    claims = ("expected steps until the chain is in a recurrent class", "no chance of an end is wrong by more")
    if not np.isfinite(steps).all() or X.shape != B.shape:
        return [Check("steps", np.inf, SAME_LIMIT, "proof", claims[0])]
    if n <= ELIMINATED:
        ends, again = B[::-1].copy(), np.ones(n)
        reduced_absorption(A.toarray()[::-1, ::-1].copy(), ends, again)
        late, error = (
            float((np.abs(steps - again[::-1]) / again[::-1]).max(initial=0.0)),
            np.abs(X - ends[::-1]).max(initial=0.0),
        )
    else:
        margin = float((steps - A @ steps).min())
        scale = 1 / margin if margin > 0 else np.inf
        late = float(np.abs(steps - 1 - A @ steps).max()) * scale
        error = float(np.abs(X - A @ X - B).max()) * float(steps.max()) * scale
    return [
        Check("steps", late, SAME_LIMIT, "proof", claims[0]),
        Check("ends", float(error), SAME_LIMIT, "proof", claims[1]),
        Check("certain", sums, SAME_LIMIT, "proof", "the chances of all ends add up to one"),
    ]
