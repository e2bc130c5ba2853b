"""Linear models: least squares, ridge, polynomials."""

from lemmata.linear_model.linear_regression import LinearRegression
from lemmata.linear_model.polynomial import PolynomialRegression
from lemmata.linear_model.ridge import Ridge

__all__ = ["LinearRegression", "PolynomialRegression", "Ridge"]
