"""Kernels: similarities of rows that are inner products of features, and their algebra."""

from lemmata.kernels.algebra import Constant, Kernel, Product, Sum
from lemmata.kernels.choice import Function, choose_kernel
from lemmata.kernels.dot import Linear, Polynomial, Sigmoid
from lemmata.kernels.features import feature_map, feature_names, finite_features
from lemmata.kernels.identity import Precomputed, White
from lemmata.kernels.rbf_features import integral_features, taylor_error, taylor_features
from lemmata.kernels.stationary import RBF, Matern, Periodic
from lemmata.kernels.transforms import Exponential, Mapped, Power, Weighted
from lemmata.kernels.validity import is_positive_semidefinite

__all__ = [
    "Constant",
    "Exponential",
    "Function",
    "Kernel",
    "Linear",
    "Mapped",
    "Matern",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RBF",
    "Sigmoid",
    "Sum",
    "Weighted",
    "White",
    "choose_kernel",
    "feature_map",
    "feature_names",
    "finite_features",
    "integral_features",
    "is_positive_semidefinite",
    "taylor_error",
    "taylor_features",
]
