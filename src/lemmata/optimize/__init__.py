"""Optimization: minimize functions, check derivatives, and prove how good a point is. Constraints: `optimize.duality`."""

from lemmata.optimize.conjugate import conjugate_gradient
from lemmata.optimize.coordinate import block_descent
from lemmata.optimize.derivatives import check_gradient, check_hessian, check_jacobian, gradient, hessian, jacobian
from lemmata.optimize.duality import Program, solve_qp
from lemmata.optimize.minimize import minimize
from lemmata.optimize.minimum import Minimum, check_minimum
from lemmata.optimize.quadratic import Quadratic, second_order
from lemmata.optimize.rates import check_rate, convergence_rate, lipschitz_step
from lemmata.optimize.rules import Adagrad, Adam, GradientDescent, Momentum, RMSProp
from lemmata.optimize.schedules import Schedule, constant, inverse, inverse_sqrt
from lemmata.optimize.simplex import maximize_on_simplex
from lemmata.optimize.stochastic import check_unbiased, minimize_mean

__all__ = [
    "minimize",
    "Minimum",
    "check_minimum",
    "minimize_mean",
    "block_descent",
    "conjugate_gradient",
    "maximize_on_simplex",
    "GradientDescent",
    "Momentum",
    "Adagrad",
    "RMSProp",
    "Adam",
    "Schedule",
    "constant",
    "inverse",
    "inverse_sqrt",
    "lipschitz_step",
    "convergence_rate",
    "check_rate",
    "check_unbiased",
    "gradient",
    "jacobian",
    "hessian",
    "check_gradient",
    "check_jacobian",
    "check_hessian",
    "Quadratic",
    "second_order",
    "Program",
    "solve_qp",
]
