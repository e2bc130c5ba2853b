"""Reinforcement learning: planning with a known model, and learning from experience."""

from lemmata.rl.mdp import MDP, from_gymnasium
from lemmata.rl.reinforce_classifier import ReinforceClassifier

__all__ = ["MDP", "from_gymnasium", "ReinforceClassifier"]
