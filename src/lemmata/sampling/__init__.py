"""Sampling: importance, Metropolis-Hastings, Gibbs, and draws that say when not to believe them."""

from lemmata.sampling.chains import chains
from lemmata.sampling.draws import Draws
from lemmata.sampling.metropolis import metropolis_hastings
from lemmata.sampling.proposals import Independence, Proposal, RandomWalk

__all__ = ["Draws", "metropolis_hastings", "RandomWalk", "Independence", "Proposal", "chains"]
