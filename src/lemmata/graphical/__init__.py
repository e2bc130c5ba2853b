"""Graphical models: Bayes nets and factor graphs, exact inference by junction trees, and learning."""

from lemmata.graphical.bayes_net import BayesNet
from lemmata.graphical.elimination import Elimination, eliminate, triangulate
from lemmata.graphical.factor import Factor, enumerate_joint
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.junction_tree import Calibrated, ImpossibleEvidence, JunctionTree

__all__ = [
    "BayesNet",
    "Calibrated",
    "Elimination",
    "Factor",
    "FactorGraph",
    "ImpossibleEvidence",
    "JunctionTree",
    "eliminate",
    "enumerate_joint",
    "triangulate",
]
