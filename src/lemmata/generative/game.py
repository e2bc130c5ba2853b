"""The adversarial game on a finite set, where both players can be played exactly.

The generator's law is Q, that of the data P. The discriminator says D(x), its probability that x is real, and the game is

    min_Q max_D  V(D, Q) = Σ P log D + Σ Q log(1 − D).

For each x the best answer maximizes P log D + Q log(1 − D): D* = P/(P + Q), which leaves V(D*, Q) = −log 4 + 2 JSD(P, Q) [1].
So the value is at least −log 4, and that only where Q = P, where D* = ½ knows nothing. Printed forms lose the sign before the
second sum, or the factor 2; the numbers of the tests tell them apart.

Played greedily the generator loses: V is linear in Q, so its best answer to D is to draw the one x that looks most real, and
the players chase each other forever. Held to what it does now by KL(Q‖Qₜ), its exact answer is Q ∝ Qₜ/(1 − D), and with D = D*
that is (P + Qₜ)/2: every round halves the distance to the data, and the value falls to −log 4. With the weight 1/η of the tie
the answer is Q ∝ Qₜ^{1−η} (P + Qₜ)^η, a step of mirror descent on a convex function of Q.

[1] Goodfellow, Pouget-Abadie, Mirza, Xu, Warde-Farley, Ozair, Courville & Bengio, NeurIPS (2014).
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from lemmata.core.iterate import iterate
from lemmata.probability.arrays import check_probabilities
from lemmata.probability.information import total_variation

LEAST = -np.log(4.0)  # the value where nothing tells the players' laws apart


class Game(NamedTuple):
    """How a game went: the generator's law at the end, the best answer to it, and values and accuracies round by round."""

    generator: np.ndarray
    discriminator: np.ndarray
    values: np.ndarray
    accuracies: np.ndarray


def two_laws(p, q):
    """Check that p and q are laws on one finite set."""
    p, q = check_probabilities(p), check_probabilities(q)
    if p.shape != q.shape or p.ndim != 1:
        raise ValueError(f"P and Q must be two laws on one finite set; got the shapes {p.shape} and {q.shape}.")
    return p, q


def optimal_discriminator(p, q):
    """Return D* = P/(P + Q), the best answer to a generator with the law Q; ½ where neither ever goes.

    Examples
    --------
    >>> optimal_discriminator([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    array([0.71428571, 0.6       , 0.25      ])
    """
    p, q = two_laws(p, q)
    return np.divide(p, p + q, out=np.full(len(p), 0.5), where=p + q > 0)


def gan_value(p, q, discriminator=None):
    """Return V(D, Q) = Σ P log D + Σ Q log(1 − D); without a discriminator, of the best: −log 4 + 2 JSD(P, Q).

    Examples
    --------
    >>> gan_value([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    -1.205163
    >>> gan_value([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.5, 0.5, 0.5])
    -1.386294
    """
    p, q = two_laws(p, q)
    d = optimal_discriminator(p, q) if discriminator is None else np.asarray(discriminator, dtype=float)
    if d.shape != p.shape or not ((d >= 0) & (d <= 1)).all():
        raise ValueError(f"A discriminator gives a probability for each of the {len(p)} values; got {d}.")
    return float((xlogy(p, d) + xlogy(q, 1 - d)).sum())


def adversarial_game(p, q, *, rate=1.0, tol=1e-12, max_iter=1000):
    """Play by turns, each player exactly, until the value is within tol of −log 4.

    Parameters
    ----------
    p : Law of the data.
    q : Law that the generator starts from. With a rate below 1 it never goes where it never went.
    rate : η, how freely the generator moves: 1 halves the distance to the data, less is slower.
    tol : Distance from −log 4 at which the game is over.

    Returns
    -------
    Game : generator, discriminator, values and accuracies; the accuracy is that of telling real from generated when both come
        equally often, ½ + ½ TV(P, Q).

    Examples
    --------
    >>> game = adversarial_game([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    >>> game.generator.round(4), game.discriminator.round(4)
    (array([0.5, 0.3, 0.2]), array([0.5, 0.5, 0.5]))
    >>> game.values[[0, 1, 2, -1]]
    array([-1.20516, -1.33673, -1.37264, -1.38629])
    >>> game.accuracies[[0, 1, 2, -1]].round(2)
    array([0.7 , 0.6 , 0.55, 0.5 ])
    """
    p, q = two_laws(p, q)
    if not isinstance(rate, Real) or not 0 < rate <= 1:
        raise ValueError(f"rate must be a number above 0 and at most 1, got {rate!r}.")
    accuracies = [float(0.5 + 0.5 * total_variation(p, q))]

    def turn(q):
        # Q/(1 − D*) = P + Q, which also says what 0/0 is where the generator never went
        answer = q ** (1 - rate) * (p + q) ** rate
        q = answer / answer.sum()
        accuracies.append(float(0.5 + 0.5 * total_variation(p, q)))
        value = gan_value(p, q)
        return q, value, value - LEAST

    run = iterate(turn, q, max_iter=max_iter, tol=tol, monotone="down", name="the game")
    values = np.concatenate([[gan_value(p, q)], run.trace])
    return Game(run.state, optimal_discriminator(p, run.state), values, np.array(accuracies))
