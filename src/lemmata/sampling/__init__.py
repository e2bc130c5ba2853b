"""Sampling: importance, Metropolis-Hastings, Gibbs, and draws that say when not to believe them."""

from lemmata.sampling.block_gibbs import block_gibbs
from lemmata.sampling.calibration import Calibration, simulation_based_calibration
from lemmata.sampling.chains import chains
from lemmata.sampling.draws import Draws
from lemmata.sampling.factor_gibbs import Marginals, certify_gibbs, gibbs_marginals
from lemmata.sampling.finite import detailed_balance, gibbs_matrix, metropolis_matrix, stationarity, transition_matrix
from lemmata.sampling.gibbs import gibbs
from lemmata.sampling.importance import Weighted, importance
from lemmata.sampling.metropolis import metropolis_hastings
from lemmata.sampling.proposals import Independence, Proposal, RandomWalk

__all__ = [
    "Draws",
    "importance",
    "Weighted",
    "metropolis_hastings",
    "RandomWalk",
    "Independence",
    "Proposal",
    "gibbs",
    "block_gibbs",
    "gibbs_marginals",
    "Marginals",
    "certify_gibbs",
    "chains",
    "transition_matrix",
    "metropolis_matrix",
    "gibbs_matrix",
    "stationarity",
    "detailed_balance",
    "simulation_based_calibration",
    "Calibration",
]
