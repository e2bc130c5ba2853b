"""Decisions: what to do about a probability, under costs, with a reject option and other priors."""

from lemmata.decision.bayes_rule import BayesRule, gaussian_rule
from lemmata.decision.decide import Decide
from lemmata.decision.estimate import estimate
from lemmata.decision.likelihood_ratio import likelihood_ratio_test
from lemmata.decision.maximum import bayes_estimate, map_estimate, mle
from lemmata.decision.priors import correct_priors, estimate_priors
from lemmata.decision.risk import bayes_action, bayes_risk, conditional_risk, decision_cost

__all__ = [
    "Decide",
    "conditional_risk",
    "bayes_action",
    "bayes_risk",
    "decision_cost",
    "correct_priors",
    "estimate_priors",
    "likelihood_ratio_test",
    "BayesRule",
    "gaussian_rule",
    "estimate",
    "mle",
    "map_estimate",
    "bayes_estimate",
]
