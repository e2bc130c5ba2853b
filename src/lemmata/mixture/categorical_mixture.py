"""`CategoricalMixture`: rows of categories that come from several kinds of rows.

A component has a chance of every category of every column, and within a component the columns are independent: all dependence
between columns is a matter of which component a row is from (latent class analysis). `discrete_mixture` says where
the model, its EM steps and the checks are.
"""

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import same
from lemmata.mixture.discrete_kernels import Census, Codes, census_block
from lemmata.mixture.discrete_mixture import CONSTRAINTS, DiscreteMixture


class CategoricalMixture(DiscreteMixture):
    """Fit a mixture of independent categories to rows of codes, which are whole numbers from 0.

    Missing entries (NaN) are left out of the likelihood, which is exact as long as an entry's absence has nothing to do with
    its value.

    Parameters
    ----------
    n_components : Number of components.
    n_categories : Categories of all columns or of each; None for one more than the largest code of each column.
    alpha : Pseudo-count of every category in each column of each component: a symmetric Dirichlet(alpha + 1) prior. 0 is
        maximum likelihood.
    tol : Stop when a plain EM step changes the mean log-likelihood of a row (with its share of the log-prior) by no more.
    max_iter : Passes over the rows at most.
    n_init : Runs from different starts, of which the best is kept.
    weights_init, probabilities_init : Given starts, the latter as probabilities_. Without weights they are equal; without
        probabilities each component begins halfway between a row, drawn far from those of the others as in k-means++, and the
        average of the table.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    weights_ : (n_components,), probability of each component.
    probabilities_ : For each column an array (n_components, categories of the column), the chances of its categories.
    n_categories_ : (n_features,), categories of each column.
    lower_bound_ : Mean log-likelihood of a row under the fitted parameters.
    lower_bounds_ : The same as trace_.
    restarts_ : (n_init,), what each run reached: how much the start matters.
    n_iter_ : Passes of the best run.
    converged_ : Whether it met tol.
    trace_ : Mean log-likelihood of a row, and with alpha its share of the log-prior, at each pass of the best run.

    Notes
    -----
    Maximum likelihood gives chances of 0 and 1. A row that is then impossible under every component has the log-density
    minus infinity, and the weights for a posterior.

    Examples
    --------
    >>> X = [[0, 2], [0, 2], [0, 1], [1, 0], [1, 0]]
    >>> model = CategoricalMixture(2, random_state=0).fit(X)
    >>> order = model.weights_.argsort()
    >>> for chances in model.probabilities_:
    ...     print(chances[order].round(3))
    [[0. 1.]
     [1. 0.]]
    [[1.    0.    0.   ]
     [0.    0.333 0.667]]
    >>> model.certify(X).holds
    True
    """

    _parameter_constraints = CONSTRAINTS | {
        "n_categories": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "probabilities_init": [list, tuple, np.ndarray, None],  # columns may have different numbers of categories
    }

    def __init__(
        self,
        n_components=1,
        *,
        n_categories=None,
        alpha=0.0,
        tol=1e-10,
        max_iter=10_000,
        n_init=1,
        weights_init=None,
        probabilities_init=None,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.n_categories = n_categories
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        """Codes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.positive_only = True
        return tags

    def _refuse(self, census, sparse):
        self._refuse_fractions(census, "codes")

    def _learn(self, census):
        self.n_categories_ = self._sizes("n_categories", _seen(census))
        self._known(census)

    def _known(self, census):
        self._within(census, self.n_categories_ - 1, "n_categories")

    def _identities(self, blocks):
        expected = self._sizes("n_categories", _seen(Census(*blocks.reduce(census_block))))
        return [same(self.n_categories_, expected, "n_categories", "categories are those given, or seen")]

    def _outcomes(self):
        return Codes(self.n_categories_)

    def _probabilities(self, value):
        columns = [np.array(column, dtype=float) for column in value]
        shapes = [(self.n_components, int(size)) for size in self.n_categories_]
        if [column.shape for column in columns] != shapes or not all(_are_chances(column) for column in columns):
            raise ValueError(
                f"probabilities_init must hold arrays of the shapes {shapes}, one for each column, with rows that are at least "
                "0 and sum to 1."
            )
        return np.hstack([column / column.sum(axis=1, keepdims=True) for column in columns])

    def _stored(self):
        return np.hstack([np.asarray(column, dtype=float) for column in self.probabilities_])

    def _shaped(self, stored):
        return [column.copy() for column in np.split(stored, self._outcomes().starts[1:-1], axis=1)]

    def _draw(self, component, n, rng):
        """Draw codes by inverting the sums of their chances."""
        columns = []
        for chances in self.probabilities_:
            reach = np.cumsum(chances[component])
            columns.append(np.searchsorted(reach, rng.random(n) * reach[-1], side="right"))
        return np.column_stack(columns)


def _seen(census):
    """Give one more than the largest code of each column, 1 where there is none."""
    return np.nan_to_num(census.spread.high).astype(np.int64) + 1


def _are_chances(rows):
    """Tell whether rows are probabilities."""
    return bool((rows >= 0).all() and (np.abs(rows.sum(axis=1) - 1.0) < 1e-6).all())
