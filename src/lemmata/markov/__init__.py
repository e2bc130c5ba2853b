"""Markov chains: where they settle, where they end, and what they say about who is best."""

from lemmata.markov.chain import MarkovChain
from lemmata.markov.ranker import MarkovRanker

__all__ = ["MarkovChain", "MarkovRanker"]
