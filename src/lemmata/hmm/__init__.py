"""Hidden Markov models: sequences whose states are not seen."""

from lemmata.hmm.categorical import CategoricalHMM
from lemmata.hmm.classifier import HMMClassifier
from lemmata.hmm.gaussian import GaussianHMM
from lemmata.hmm.hidden_markov import Forecast

__all__ = ["CategoricalHMM", "Forecast", "GaussianHMM", "HMMClassifier"]
