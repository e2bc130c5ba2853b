"""Linear models: least squares and its penalties, Bayesian regression, and linear classifiers."""

from lemmata.linear_model.bayesian import BayesianLinearRegression
from lemmata.linear_model.bayesian_logistic import BayesianLogisticRegression
from lemmata.linear_model.lasso import ElasticNet, Lasso, lasso_path
from lemmata.linear_model.linear_regression import LinearRegression
from lemmata.linear_model.logistic import LogisticRegression
from lemmata.linear_model.lp import LpRegression
from lemmata.linear_model.maximum_entropy import MaximumEntropyClassifier
from lemmata.linear_model.perceptron import Perceptron
from lemmata.linear_model.polynomial import PolynomialRegression
from lemmata.linear_model.probit import ProbitRegression
from lemmata.linear_model.ridge import Ridge
from lemmata.linear_model.separability import separability
from lemmata.linear_model.sgd import SGDClassifier

__all__ = [
    "ElasticNet",
    "Lasso",
    "lasso_path",
    "LinearRegression",
    "LogisticRegression",
    "LpRegression",
    "PolynomialRegression",
    "Ridge",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "MaximumEntropyClassifier",
    "ProbitRegression",
    "Perceptron",
    "SGDClassifier",
    "separability",
]
