"""Online variational Bayes: a step of the topics after every few documents, for corpora that come as a stream.

After the minibatch number t, of B documents with the expected counts C, the topics move a part of the way to where they would
be if the whole corpus of D documents were like it,

    λ ← (1 − ρₜ) λ + ρₜ (η + (D/B) C),    ρₜ = (τ + t)^−κ,

a step along the natural gradient of the bound. With ½ < κ ≤ 1 the steps add up to infinity and their squares do not, so that
λ converges to a stationary point of the bound, and is close to one after a number of passes: the noise fades as ρₜ does [1].

[1] Hoffman, Blei & Bach, NeurIPS 23 (2010).
"""

from typing import NamedTuple

from lemmata.core.blocks import rows_of
from lemmata.topic.variational import BEGIN, Posterior, Rest, Sums, moved, pass_block, topics_bound, words_of


class Pace(NamedTuple):
    """How online steps go: documents a step and of the corpus, κ, τ, when documents rest, whether α and η are learned."""

    batch_size: int
    total: float
    decay: float
    offset: float
    rest: Rest
    learns: tuple[bool, bool]


def online_block(pace, X, weight, state, own):
    """Walk through a block, minibatch by minibatch; the state is (λ, α, η, steps taken, sum of the bounds)."""
    *posterior, steps, bound = state
    posterior = Posterior(*posterior)
    for start in range(0, X.shape[0], pace.batch_size):
        batch = rows_of((X, weight), slice(start, start + pace.batch_size))
        sums = Sums(*pass_block(*batch, words_of(posterior.components), posterior.alpha, pace.rest))
        scale = pace.total / sums.n_documents
        bound += sums.bound + topics_bound(posterior.components, posterior.eta) / scale
        target = moved(posterior, sums, pace.learns if steps >= BEGIN else (False, False), scale)
        steps += 1
        rho = (pace.offset + steps) ** -pace.decay
        posterior = Posterior(*((1 - rho) * a + rho * b for a, b in zip(posterior, target, strict=True)))
    return (*posterior, steps, bound), own
