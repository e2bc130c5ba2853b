"""`BinomialMixture`: counts of heads, when nobody noted which coin was tossed.

Every column is a coin that is tossed n times in a row of the table, and every component has its own chance of heads for each.
The density is that of counts: with the binomial coefficient, so that it sums to one over 0, …, n. The likelihood of the tosses
in the order in which they fell is smaller by that factor, which no parameter changes. `discrete_mixture` says where
the model, its EM steps and the checks are.
"""

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import same
from lemmata.mixture.discrete_kernels import Census, Trials, census_block
from lemmata.mixture.discrete_mixture import CONSTRAINTS, DiscreteMixture


class BinomialMixture(DiscreteMixture):
    """Fit a mixture of independent binomial counts to rows.

    Missing entries (NaN, in dense tables) are left out of the likelihood, which is exact as long as an entry's absence has
    nothing to do with its value. A sparse table stays sparse.

    Parameters
    ----------
    n_components : Number of components.
    n_trials : Tosses behind each entry: a number, or one for each column; None for the largest count of each column.
    fit_weights : Whether to fit the weights; False keeps weights_init or, without these, equal weights.
    alpha : Pseudo-count of a head and of a tail in each column of each component: a Beta(alpha + 1, alpha + 1) prior. 0 is
        maximum likelihood.
    tol : Stop when a plain EM step changes the mean log-likelihood of a row (with its share of the log-prior) by no more.
    max_iter : Passes over the rows at most.
    n_init : Runs from different starts, of which the best is kept.
    weights_init, probabilities_init : Given starts. Without weights they are equal; without probabilities each component
        begins with a row, drawn far from those of the others as in k-means++, and one toss of the average of the table.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    weights_ : (n_components,), probability of each component.
    probabilities_ : (n_components, n_features), chance of a head.
    n_trials_ : (n_features,), tosses behind each entry.
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
    Five times one of two coins was drawn and tossed ten times; nobody noted which. EM, from a guess:

    >>> heads = [[5], [9], [8], [4], [7]]
    >>> coins = BinomialMixture(2, n_trials=10, fit_weights=False, probabilities_init=[[0.6], [0.5]])
    >>> coins.fit(heads).probabilities_.round(4)
    array([[0.7968],
           [0.5196]])
    >>> coins.predict_proba(heads)[:, 0].round(2)
    array([0.1 , 0.95, 0.85, 0.03, 0.6 ])
    >>> coins.certify(heads).holds
    True
    """

    _parameter_constraints = CONSTRAINTS | {
        "n_trials": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "fit_weights": ["boolean"],
    }

    def __init__(
        self,
        n_components=1,
        *,
        n_trials=None,
        fit_weights=True,
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
        self.n_trials = n_trials
        self.fit_weights = fit_weights
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
        """Counts, sparse or not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = tags.input_tags.positive_only = True
        return tags

    def _refuse(self, census, sparse):
        self._refuse_fractions(census, "counts")

    def _learn(self, census):
        self.n_trials_ = self._sizes("n_trials", _largest(census))
        self._known(census)

    def _known(self, census):
        self._within(census, self.n_trials_, "n_trials")

    def _identities(self, blocks):
        expected = self._sizes("n_trials", _largest(Census(*blocks.reduce(census_block))))
        return [same(self.n_trials_, expected, "n_trials", "tosses are those given, or the largest counts")]

    def _outcomes(self):
        return Trials(self.n_trials_.astype(float))

    def _draw(self, component, n, rng):
        """Draw counts."""
        return rng.binomial(self.n_trials_, self.probabilities_[component], (n, self.n_features_in_))


def _largest(census):
    """Give the largest count of each column, 0 where there is none."""
    return np.nan_to_num(census.spread.high).astype(np.int64)
