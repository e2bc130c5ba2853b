"""What the generative networks share: tables in their own units, a fit that can be repeated, and ways through the latent space.

A row is made from few coordinates z with the law N(0, I), by a network that is fitted. Columns are centered and scaled inside,
so that their units do not matter; or all divided by one number, which keeps their proportions.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Check, same
from lemmata.core.data import as_matrix, finite_rows
from lemmata.core.estimator import Estimator, Iterative
from lemmata.core.iterate import KEEP_LAST, replay
from lemmata.core.moments import ROUNDING, spread_block
from lemmata.core.random import generator
from lemmata.neural_network.activations import NAMES
from lemmata.neural_network.network import Network
from lemmata.optimize.rules import RULES, Rule

LARGEST = 128  # visits of a batch that is a tenth of the table


class Lesson(NamedTuple):
    """What visits of a block need to know."""

    plan: tuple  # of the kernels
    unit: float  # weight of one visit
    batch_size: int
    shuffle: bool
    mean: np.ndarray
    scale: np.ndarray
    seed: int


def rule_of(rule, rate):
    """Return a rule: one that is given, or that of a name with a rate."""
    return rule if isinstance(rule, Rule) else RULES[rule](rate)


def network_of(shape, parameters):
    """Show parameters as a network."""
    network = Network(shape.sizes, [NAMES[code] for code in shape.codes])
    network.parameters = parameters
    return network


def whole_number(value, name):
    """Return a number of at least 1, checked."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


class LatentEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Iterative, Estimator):
    """Base of models that make rows from latent coordinates.

    A subclass has `_steps(blocks, seed, scaling)`, which returns the step of a fit and the state before the first; the fitted
    `_attributes` of a state; and `_decode`, from latent coordinates to rows.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _seed(self):
        return int(generator(self.random_state).integers(2**32))

    def _scaling(self, blocks):
        """Return what columns are centered by and divided by."""
        spread = blocks.reduce(spread_block)
        if self.standardize:
            return spread.mean, spread.scale
        common = float(np.sqrt((spread.squares / spread.weight).mean()))
        return spread.mean, np.full(len(spread.mean), common if common > ROUNDING * np.abs(spread.mean).max() else 1.0)

    def _run(self, blocks, seed, scaling, given=None):
        """Run the fit; without data for callbacks it is a replay, which shows nothing and keeps nothing."""
        step, first = self._steps(blocks, seed, scaling)
        if given is None:
            return replay(step, first, max_iter=self.max_iter, ended=lambda state: state.steps >= self.t_)

        def fitted(state):
            return self._attributes(state, scaling, blocks.dtype)

        with self._fitting(blocks, **given) as fitting:
            return fitting.iterate(step, first, tol=0.0, **KEEP_LAST, name=type(self).__name__, fitted=fitted)

    def _again(self, blocks):
        """Repeat the fit; return its attributes, and checks of the steps, means and scales against them."""
        scaling = self._scaling(blocks)
        again = self._attributes(self._run(blocks, self.seed_, scaling).state, scaling, self.parameters_.dtype)
        steps = Check("steps", abs(self.t_ - again["t_"]), 0.0, "proof", "after as many steps")
        return again, [steps, *self._scale_checks(scaling)]

    def _scale_checks(self, scaling):
        """Check means and scales against the table."""
        floor = np.sqrt(np.finfo(float).eps) * float(np.abs(scaling[1]).max())
        by = "their standard deviations" if self.standardize else "one number for all"
        return [
            same(self.mean_, scaling[0], "means", "columns are centered by their means", floor=floor),
            same(self.scale_, scaling[1], "scales", f"and divided by {by}"),
        ]

    def _latent(self, Z, name="X"):
        """Return latent coordinates, checked."""
        check_is_fitted(self)
        Z, _ = as_matrix(Z)
        if len(Z) == 0 or Z.shape[1] != self.latent_dim:
            raise ValueError(f"{name} has the shape {Z.shape}, and a row holds {self.latent_dim} latent coordinates.")
        finite_rows(Z, int, allow_nan=False, name=name)
        return Z.astype(np.float32 if Z.dtype == np.float32 else np.float64)

    def _places(self, n, axes, start):
        """Return n copies of a place to start from, the origin if None, once the coordinates to walk along are known."""
        check_is_fitted(self)
        if not all(isinstance(axis, Integral) and -self.latent_dim <= axis < self.latent_dim for axis in axes):
            got = ", ".join(map(repr, axes))
            raise ValueError(f"A latent coordinate is a whole number from 0 to {self.latent_dim - 1}; got {got}.")
        Z = np.zeros((1, self.latent_dim)) if start is None else self._latent(np.atleast_2d(start), "start")
        if len(Z) > 1:
            raise ValueError(f"start is one point of the latent space, got {len(Z)} of them.")
        return np.repeat(Z, n, axis=0)

    def latent_walk(self, axis=0, n=10, start=None):
        """Give rows made along one latent coordinate, at n equally probable places of it.

        Parameters
        ----------
        axis : Number of the coordinate.
        n : Number of rows.
        start : Latent coordinates that the others keep, (latent_dim,); the origin if None.
        """
        Z = self._places(whole_number(n, "n"), (axis,), start)
        Z[:, axis] = norm.ppf((np.arange(n) + 0.5) / n)
        return self._decode(Z)

    def latent_grid(self, n=10, axes=(0, 1), start=None):
        """Give rows made on a plane of the latent space, (n, n, n_features), at equally probable places of two coordinates.

        The first axis of the result runs along axes[1], downwards as in a picture.
        """
        check_is_fitted(self)
        if self.latent_dim < 2:
            raise ValueError("A plane needs two latent coordinates; use latent_walk along the only one.")
        Z = self._places(whole_number(n, "n") ** 2, axes, start)
        if len({axis % self.latent_dim for axis in axes}) != 2 or len(axes) != 2:
            raise ValueError(f"axes must name two different coordinates, got {axes!r}.")
        places = norm.ppf((np.arange(n) + 0.5) / n)
        Z[:, axes[0]], Z[:, axes[1]] = np.tile(places, n), np.repeat(places[::-1], n)
        return self._decode(Z).reshape(n, n, -1)

    def _between(self, a, b, n):
        """Give rows made at n places on the line from one point of the latent space to another, both included."""
        shares = np.linspace(0, 1, whole_number(n, "n"))[:, None]
        return self._decode((1 - shares) * a + shares * b)


def ends_of(a, b):
    """Return the two ends of a way as the rows of a table."""
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"a and b must be two points with as many numbers each, got the shapes {a.shape} and {b.shape}.")
    return np.stack([a, b])
