"""What the generative networks share: tables in their own units, a fit that can be repeated, and ways through the latent space.

A row is made from few coordinates z with the law N(0, I), by a network that is fitted. Columns are centered and scaled inside,
so that their units do not matter; or all divided by one number, which keeps their proportions.
"""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from lemmata.core.certificate import same
from lemmata.core.estimator import Estimator, Iterative
from lemmata.core.iterate import iterate
from lemmata.core.moments import ROUNDING, spread_block
from lemmata.core.random import generator
from lemmata.neural_network.activations import NAMES
from lemmata.neural_network.network import Network
from lemmata.optimize.rules import RULES, Rule

SMALLEST, LARGEST = 16, 128  # visits of a batch that is a tenth of the table


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


def hidden_sizes(sizes, name="hidden_layer_sizes"):
    """Return numbers of hidden units, checked; one number is one layer."""
    found = np.atleast_1d(np.asarray(sizes))
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or (found < 1).any())):
        raise ValueError(f"{name} must hold whole numbers of at least 1, one for each hidden layer; got {sizes!r}.")
    return [int(n) for n in found]


def batch_of(batch_size, total):
    """Return the number of visits in a batch; of a table with so many visits, if it is ours to choose."""
    return int(min(max(total // 10, SMALLEST), LARGEST)) if batch_size == "auto" else int(batch_size)


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
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                return iterate(step, first, max_iter=self.max_iter, tol=0.0, name="replay")

        def fitted(state):
            return self._attributes(state, scaling, blocks.dtype)

        options = {"tol": 0.0, "monotone": "down", "rounding": np.inf}  # the last state is the one to keep, up or down
        with self._fitting(blocks, **given) as fitting:
            return fitting.iterate(step, first, **options, name=type(self).__name__, fitted=fitted)

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
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name=name)
        if Z.shape[1] != self.latent_dim:
            raise ValueError(f"{name} has {Z.shape[1]} columns, and there are {self.latent_dim} latent coordinates.")
        return Z

    def latent_walk(self, axis=0, n=10, start=None):
        """Give rows made along one latent coordinate, at n equally probable places of it.

        Parameters
        ----------
        axis : Number of the coordinate.
        n : Number of rows.
        start : Latent coordinates that the others keep, (latent_dim,); the origin if None.
        """
        check_is_fitted(self)
        Z = np.zeros((1, self.latent_dim)) if start is None else self._latent(np.atleast_2d(start), "start")
        Z = np.repeat(Z[:1], whole_number(n, "n"), axis=0)
        Z[:, axis] = norm.ppf((np.arange(n) + 0.5) / n)
        return self._decode(Z)

    def latent_grid(self, n=10, axes=(0, 1), start=None):
        """Give rows made on a plane of the latent space, (n, n, n_features), at equally probable places of two coordinates.

        The first axis of the result runs along axes[1], downwards as in a picture.
        """
        check_is_fitted(self)
        if self.latent_dim < 2:
            raise ValueError("A plane needs two latent coordinates; use latent_walk along the only one.")
        Z = np.zeros((1, self.latent_dim)) if start is None else self._latent(np.atleast_2d(start), "start")
        places = norm.ppf((np.arange(whole_number(n, "n")) + 0.5) / n)
        Z = np.repeat(Z[:1], n * n, axis=0)
        Z[:, axes[0]], Z[:, axes[1]] = np.tile(places, n), np.repeat(places[::-1], n)
        return self._decode(Z).reshape(n, n, -1)

    def _between(self, a, b, n):
        """Give rows made at n places on the line from one point of the latent space to another, both included."""
        shares = np.linspace(0, 1, whole_number(n, "n"))[:, None]
        return self._decode((1 - shares) * a + shares * b)
