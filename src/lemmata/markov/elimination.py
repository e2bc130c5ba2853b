"""State reduction: laws and absorption of small chains, without a single subtraction.

Watch a chain only while it is outside of one state k. What is seen is again a chain: from i it goes to j directly, or by way of
k, and since k is left for j with odds A_kj, the new chance is A_ij + A_ik A_kj / Σ_{l≠k} A_kl. State after state is put away
so; the last one has the law 1, and the others come back in the opposite order. The chance 1 − A_kk of leaving k, in which
Gaussian elimination would lose its digits, is the sum of the chances of going elsewhere [1]. All that happens to the numbers,
none of them negative, is that they are added, multiplied and divided: every entry of the result, however small, is right to
about as many roundings as there are operations behind it, whatever the condition of the chain [2].

[1] Grassmann, Taksar & Heyman, Operations Research 33 (1985). [2] O'Cinneide, Numerische Mathematik 65 (1993).
"""

import numpy as np

from lemmata.core.kernel import kernel

LARGE = 1e200  # masses beyond this are scaled down before they overflow


@kernel
def reduced_law(A):
    """Return the stationary law of an irreducible chain; A, whose diagonal is not looked at, is overwritten.

    Examples
    --------
    >>> reduced_law(np.array([[0.6, 0.4], [0.3, 0.7]]))
    array([0.42857143, 0.57142857])
    """
    n = len(A)
    for k in range(n - 1, 0, -1):
        leaving = 0.0
        for j in range(k):
            leaving += A[k, j]
        for i in range(k):
            A[i, k] /= leaving
        for i in range(k):
            share = A[i, k]
            if share > 0.0:
                for j in range(k):
                    A[i, j] += share * A[k, j]
    law = np.zeros(n)
    law[0] = 1.0
    for k in range(1, n):
        mass = 0.0
        for i in range(k):
            mass += law[i] * A[i, k]
        law[k] = mass
        if mass > LARGE:
            for i in range(k + 1):
                law[i] /= mass
    return law / law.sum()


@kernel
def reduced_absorption(A, B, cost):
    """Turn chances of one step into those of the whole way: where it ends, and what it costs.

    Parameters
    ----------
    A : (n, n), chances of moves among the transient states; its diagonal is not looked at. Overwritten.
    B : (n, m), chances of the moves that leave them, by end. Becomes the chances of the ends.
    cost : (n,), cost of a visit to each state. Becomes the expected cost until the end: of ones, the expected steps.

    Examples
    --------
    >>> A, B, steps = np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([[0.5, 0.0], [0.0, 0.5]]), np.ones(2)
    >>> reduced_absorption(A, B, steps)
    >>> B, steps
    (array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]]), array([2., 2.]))
    """
    n, m = B.shape
    for k in range(n - 1, -1, -1):
        leaving = 0.0
        for j in range(k):
            leaving += A[k, j]
        for j in range(m):
            leaving += B[k, j]
        for j in range(k):
            A[k, j] /= leaving
        for j in range(m):
            B[k, j] /= leaving
        cost[k] /= leaving
        for i in range(k):
            share = A[i, k]
            if share > 0.0:
                for j in range(k):
                    A[i, j] += share * A[k, j]
                for j in range(m):
                    B[i, j] += share * B[k, j]
                cost[i] += share * cost[k]
    for k in range(n):
        for i in range(k):
            share = A[k, i]
            for j in range(m):
                B[k, j] += share * B[i, j]
            cost[k] += share * cost[i]
