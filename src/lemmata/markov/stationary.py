"""Where a chain settles: one stationary law for each recurrent class, and how its law is checked.

A law w is stationary if wP = w. On a class that is never left there is exactly one, with a positive mass for every state; all
others are mixtures of these, and a state outside of them has mass 0 in each. So a chain with r recurrent classes has one
stationary law if r = 1 and otherwise infinitely many. Whether the chain also converges is another matter: to flip between two
states has the one law (½, ½), and goes on flipping for ever; what converges without conditions is the average over time.

Up to `ELIMINATED` states a class is solved by elimination, right in every entry; beyond, by `aggregation`.
Certificate: for any w with mass one, w(P − 1r) = w if r = wP − w. So w is exactly stationary for a matrix whose rows differ
from P's by no more than ‖r‖₁ in sum. For small classes the elimination is repeated in the opposite order: since each of the two
is right in every entry, whatever the condition of the chain, they agree with each other and with a law that is right.
"""

import warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.certificate import SAME_LIMIT, Check
from lemmata.core.kernel import kernel
from lemmata.markov.aggregation import large_law
from lemmata.markov.elimination import reduced_law

ELIMINATED = 1000  # states of a class: a third of their cube takes a fraction of a second
RESIDUAL_LIMIT = 1e-12
MOST_NUMBERS = 50_000_000  # in a dense table of laws


def law_of(P):
    """Find the stationary law of an irreducible chain in CSR form, and ‖wP − w‖₁.

    Examples
    --------
    >>> law_of(csr_array([[0.6, 0.4], [0.3, 0.7]]))[0]
    array([0.42857143, 0.57142857])
    """
    n = P.shape[0]
    if n == 1:
        return np.ones(1), 0.0
    if n <= ELIMINATED:
        law = reduced_law(P.toarray())
        if np.isfinite(law).all():  # chances of 1e-300 may vanish while they are multiplied
            return law, float(np.abs(P.T @ law - law).sum())
    return large_law(P)


def inside(P, members):
    """Restrict a chain to a class; the whole chain stays as it is."""
    return P if len(members) == P.shape[0] else csr_array(P[members][:, members])


def stationary_laws(P, classes):
    """Find a law for each recurrent class, in the order of the classes, as rows; sparse rows where dense ones are too many.

    Examples
    --------
    >>> from lemmata.markov.classes import classes_of
    >>> P = csr_array([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    >>> stationary_laws(P, classes_of(P))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    groups = [members for members, closed in zip(classes.groups, classes.recurrent, strict=True) if closed]
    laws, worst = [], 0.0
    for members in groups:
        law, residual = (np.ones(1), 0.0) if len(members) == 1 else law_of(inside(P, members))
        laws.append(law)
        worst = max(worst, residual)
    if worst > RESIDUAL_LIMIT:
        warnings.warn(
            f"The stationary law is known up to ‖wP − w‖₁ = {worst:.1e} only: the chain mixes too slowly for its size.",
            ConvergenceWarning,
            stacklevel=4,
        )
    shape = (len(groups), P.shape[0])
    ends = np.cumsum([0, *map(len, groups)])
    rows = csr_array((np.concatenate(laws), np.concatenate(groups), ends), shape=shape)
    return rows.toarray() if shape[0] * shape[1] <= MOST_NUMBERS else rows


@kernel
def largest_difference(a, b):
    """Return the largest difference of positive numbers relative to the second ones."""
    worst = 0.0
    for i in range(len(a)):
        worst = max(worst, abs(a[i] - b[i]) / b[i])
    return worst


def law_checks(P, classes, laws):
    """Check rows of laws against the chain: mass one, nothing negative, in balance, and for small classes right in every entry.

    Examples
    --------
    >>> from lemmata.markov.classes import classes_of
    >>> P = csr_array([[0.6, 0.4], [0.3, 0.7]])
    >>> [check.holds for check in law_checks(P, classes_of(P), np.array([[3 / 7, 4 / 7]]))]
    [True, True, True]
    >>> [check.holds for check in law_checks(P, classes_of(P), np.array([[0.43, 0.57]]))]
    [True, False, False]
    """
    groups = [members for members, closed in zip(classes.groups, classes.recurrent, strict=True) if closed]
    laws = csr_array(laws)
    claims = (
        "masses are at least 0 and add up to one, on one recurrent class for each law",
        "‖wP − w‖₁: w is exactly stationary for a matrix whose rows differ by no more in sum",
        "elimination in the opposite order gives every entry again, whatever the condition",
    )
    if laws.shape != (len(groups), P.shape[0]):
        return [Check("mass", np.inf, SAME_LIMIT, "proof", claims[0])]
    mass = float(np.abs(laws.sum(axis=1) - 1).max() - min(laws.data.min(initial=0.0), 0.0))
    residual = (
        float(np.abs((laws @ P - laws).data).sum()) if len(groups) == 1 else float(abs(laws @ P - laws).sum(axis=1).max())
    )
    checks = [None, Check("stationary", residual, RESIDUAL_LIMIT, "proof", claims[1])]
    outside, entries, repeated = 0.0, 0.0, False
    for number, members in enumerate(groups):
        row = laws[[number]]
        law = row[:, members].toarray().ravel()
        outside = max(outside, abs(float(row.sum()) - float(law.sum())))
        if 1 < len(members) <= ELIMINATED:
            again = reduced_law(inside(P, members).toarray()[::-1, ::-1].copy())[::-1]
            if np.isfinite(again).all() and again.min() > 0:
                entries, repeated = max(entries, float(largest_difference(law, again))), True
    checks[0] = Check("mass", mass + outside, SAME_LIMIT, "proof", claims[0])
    return [*checks, Check("law", entries, SAME_LIMIT, "proof", claims[2])] if repeated else checks
