"""Graphical models: Bayes nets and factor graphs, exact inference by junction trees, and learning."""

from lemmata.graphical.bayes_net import BayesNet
from lemmata.graphical.bif import from_bif, to_bif
from lemmata.graphical.constraints import ConstraintProblem, Verdict
from lemmata.graphical.decomposition import (
    TreeDecomposition,
    clique_tree,
    dependency_graph,
    exact_treewidth,
    is_chordal,
    maximal_cliques,
    moralize,
    tree_decomposition,
    treewidth_bound,
)
from lemmata.graphical.elimination import Elimination, eliminate, triangulate
from lemmata.graphical.factor import Factor, enumerate_joint
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.gaussian import GaussianBeliefs, GaussianFactorGraph
from lemmata.graphical.gaussian_factor import GaussianFactor, linear_gaussian
from lemmata.graphical.junction_tree import Calibrated, ImpossibleEvidence, JunctionTree
from lemmata.graphical.log_linear import LogLinearModel
from lemmata.graphical.loopy import LoopyBeliefs, loopy_marginals
from lemmata.graphical.separation import Separation, d_separated
from lemmata.graphical.sum_product import SumProduct, sum_product
from lemmata.graphical.text_files import FileFormatError
from lemmata.graphical.uai import from_uai, read_uai_evidence, to_uai

__all__ = [
    "BayesNet",
    "Calibrated",
    "ConstraintProblem",
    "Elimination",
    "Factor",
    "FactorGraph",
    "FileFormatError",
    "GaussianBeliefs",
    "GaussianFactor",
    "GaussianFactorGraph",
    "ImpossibleEvidence",
    "JunctionTree",
    "LogLinearModel",
    "LoopyBeliefs",
    "Separation",
    "SumProduct",
    "TreeDecomposition",
    "Verdict",
    "clique_tree",
    "d_separated",
    "dependency_graph",
    "eliminate",
    "enumerate_joint",
    "exact_treewidth",
    "from_bif",
    "from_uai",
    "is_chordal",
    "linear_gaussian",
    "loopy_marginals",
    "maximal_cliques",
    "moralize",
    "read_uai_evidence",
    "sum_product",
    "to_bif",
    "to_uai",
    "tree_decomposition",
    "treewidth_bound",
    "triangulate",
]
