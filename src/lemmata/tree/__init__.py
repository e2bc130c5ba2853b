"""Decision trees, grown exactly."""

from lemmata.tree.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from lemmata.tree.export import export_text
from lemmata.tree.impurity import impurity, split_gain
from lemmata.tree.nodes import Tree

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor", "Tree", "export_text", "impurity", "split_gain"]
