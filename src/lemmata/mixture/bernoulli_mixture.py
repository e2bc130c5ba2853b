"""`BernoulliMixture`: rows of zeros and ones that come from several kinds of rows.

A component has a chance of a one for each column, and within a component the columns are independent: all dependence between
columns is a matter of which component a row is from. `discrete_mixture` says where
the model, its EM steps and the checks are.
"""

from numbers import Real

import numpy as np

from lemmata.mixture.discrete_kernels import Trials
from lemmata.mixture.discrete_mixture import CONSTRAINTS, DiscreteMixture


class BernoulliMixture(DiscreteMixture):
    """Fit a mixture of independent zeros and ones to rows.

    Missing entries (NaN, in dense tables) are left out of the likelihood, which is exact as long as an entry's absence has
    nothing to do with its value. A sparse table stays sparse.

    Parameters
    ----------
    n_components : Number of components.
    binarize : Larger entries count as one, others as zero; None where X holds zeros and ones only.
    alpha : Pseudo-count of a zero and of a one in each column of each component: a Beta(alpha + 1, alpha + 1) prior. 0 is
        maximum likelihood.
    tol : Stop when a plain EM step changes the mean log-likelihood of a row (with its share of the log-prior) by no more.
    max_iter : Passes over the rows at most.
    n_init : Runs from different starts, of which the best is kept.
    weights_init, probabilities_init : Given starts. Without weights they are equal; without probabilities each component
        begins halfway between a row, drawn far from those of the others as in k-means++, and the average of the table.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    weights_ : (n_components,), probability of each component.
    probabilities_ : (n_components, n_features), chance of a one.
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
    >>> X = [[1, 1, 0, 0], [1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> model = BernoulliMixture(2, random_state=0).fit(X)
    >>> order = model.weights_.argsort()
    >>> model.weights_[order].round(3), model.probabilities_[order].round(3)
    (array([0.4, 0.6]), array([[0.   , 0.   , 1.   , 1.   ],
           [1.   , 1.   , 0.   , 0.333]]))
    >>> bool(model.predict([[1, float("nan"), 0, 1]])[0] == order[1])
    True
    >>> print(model.certify(X))
    BernoulliMixture(n_components=2, random_state=0): certificate holds (local)
      check           value     limit  kind   claim
      parameters      ...e... ≤ 1e-06  proof  weights and chances are probabilities
      log-likelihood  ...e... ≤ 1e-06  proof  the mean log-density of the rows
      weights         ...e... ≤ 1e-03  local  an EM step leaves the weights where they are
      probabilities   ...e... ≤ 1e-03  local  an EM step leaves the probabilities where they are
      border          ...e... ≤ 1e-02  local  to raise a 0 does not pay
      posterior       ...e... ≤ 1e-06  proof  the E-step is Bayes' rule
    """

    _parameter_constraints = CONSTRAINTS | {
        "binarize": [Real, None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        binarize=0.0,
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
        self.binarize = binarize
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
        """Two values, sparse or not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
        return tags

    def _refuse(self, census, sparse):
        if self.binarize is None and census.strange:
            raise ValueError(
                f"With binarize=None X must hold 0 and 1 only, but {census.strange} entries are neither: give the threshold "
                "above which an entry counts as one."
            )
        if sparse and self.binarize is not None and self.binarize < 0:
            raise ValueError("A sparse table takes no negative binarize: what it does not store would count as one.")

    def _outcomes(self):
        return Trials(np.ones(self.n_features_in_), self.binarize)

    def _draw(self, component, n, rng):
        """Draw zeros and ones."""
        return (rng.random((n, self.n_features_in_)) < self.probabilities_[component]).astype(np.int64)
