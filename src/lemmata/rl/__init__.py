"""Reinforcement learning: planning with a known model, and learning from experience."""

from lemmata.rl.evaluation import Evaluation, evaluate_policy
from lemmata.rl.linear_program import linear_program
from lemmata.rl.mdp import MDP, from_gymnasium
from lemmata.rl.policy_iteration import policy_iteration
from lemmata.rl.q_learning import QLearning
from lemmata.rl.reinforce import Reinforce
from lemmata.rl.reinforce_classifier import ReinforceClassifier
from lemmata.rl.solution import Solution
from lemmata.rl.td_lambda import TDLambda
from lemmata.rl.td_network import TDNetwork
from lemmata.rl.value_iteration import value_iteration

__all__ = [
    "MDP",
    "from_gymnasium",
    "value_iteration",
    "policy_iteration",
    "linear_program",
    "Solution",
    "evaluate_policy",
    "Evaluation",
    "QLearning",
    "TDLambda",
    "TDNetwork",
    "Reinforce",
    "ReinforceClassifier",
]
