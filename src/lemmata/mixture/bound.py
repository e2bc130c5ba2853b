"""The bound under every EM algorithm, for hidden variables with finitely many values.

Let x be seen and z hidden, and q any distribution of z. By Jensen's inequality

    log p(x|θ) = log Σ_z q(z) p(x, z|θ)/q(z) ≥ E_q[log p(x, z|θ)] + H(q) =: ELBO(q, θ),

and the difference is exactly KL(q ‖ p(z|x, θ)). The E-step makes it zero with q = p(z|x, θ_old). Then, at every θ,

    log p(x|θ) = Q(θ; θ_old) + H(θ_old) + D(θ_old ‖ θ),

Q the expected log joint density, H the entropy of the old posterior and D ≥ 0 the divergence of the new posterior from it.
The M-step raises Q; H does not depend on θ, and D, which was 0, cannot fall: so the log-likelihood rises by at least as much
as Q [1].

[1] Dempster, Laird & Rubin, J. R. Stat. Soc. B 39 (1977).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import entr, logsumexp, xlogy


class Decomposition(NamedTuple):
    """The three terms of a log-likelihood, summed over rows: expected log joint, entropy, divergence."""

    Q: float
    H: float
    D: float


def elbo(q, log_joint):
    """Bound the log-likelihood of each row from below.

    Parameters
    ----------
    q : (n_rows, n_values), any distribution of the hidden variable of each row.
    log_joint : (n_rows, n_values), log p(xᵢ, z|θ).

    Returns
    -------
    bound : (n_rows,), at most log p(xᵢ|θ), and equal to it where q is the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> joint = np.array([[0.3, 0.1]])
    >>> elbo([[0.5, 0.5]], np.log(joint)), elbo([[0.75, 0.25]], np.log(joint)), float(np.log(0.4))
    (array([-1.0601]), array([-0.9162]), -0.9162)
    """
    q, log_joint = _distribution(q), np.asarray(log_joint, dtype=float)
    if q.shape != log_joint.shape:
        raise ValueError(f"q has the shape {q.shape} and log_joint {log_joint.shape}; both need a row for each observation.")
    expected = np.where(q > 0, q * np.where(q > 0, log_joint, 0.0), 0.0)
    return expected.sum(axis=1) + entr(q).sum(axis=1)


def decomposition(log_joint, log_joint_old):
    """Split the log-likelihood at θ into Q(θ; θ_old), H(θ_old) and D(θ_old ‖ θ).

    Parameters
    ----------
    log_joint, log_joint_old : (n_rows, n_values), log p(xᵢ, z) under θ and under θ_old.

    Examples
    --------
    >>> import numpy as np
    >>> terms = decomposition(np.log([[0.3, 0.1]]), np.log([[0.2, 0.2]]))
    >>> terms
    Decomposition(Q=-1.7532, H=0.6931, D=0.1438)
    >>> sum(terms), float(np.log(0.4))
    (-0.9162, -0.9162)
    """
    new, old = np.asarray(log_joint, dtype=float), np.asarray(log_joint_old, dtype=float)
    if new.ndim != 2 or new.shape != old.shape:
        raise ValueError(f"The tables of log densities have the shapes {new.shape} and {old.shape}; both need (rows, values).")
    q = np.exp(old - logsumexp(old, axis=1, keepdims=True))
    log_posterior = new - logsumexp(new, axis=1, keepdims=True)
    seen = q > 0
    expected = float((q[seen] * new[seen]).sum())
    divergence = float(xlogy(q[seen], q[seen]).sum() - (q[seen] * log_posterior[seen]).sum())
    return Decomposition(expected, float(entr(q).sum()), divergence)


def _distribution(q):
    """Check that every row of q is a distribution."""
    q = np.asarray(q, dtype=float)
    if q.ndim != 2 or not (q >= 0).all() or not np.allclose(q.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        raise ValueError("q must have a row for each observation, whose entries are at least 0 and sum to 1.")
    return q
