"""What every finite mixture can do: p(x) = Σₖ πₖ pₖ(x).

A row comes from component k with probability πₖ, and then from the component's density pₖ; which component it was is not seen.
Given the row, Bayes' rule says P(k|x) = πₖ pₖ(x)/p(x). A kind of mixture brings the components: their parameters, their EM
steps (a `LatentModel`) and, for a block of rows, this posterior and log p(x). The rest is here.
"""

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import NO_WEIGHTS, Estimator, Iterative, as_output
from lemmata.core.random import generator, spawn
from lemmata.core.threads import serial_blas
from lemmata.mixture.em import best_of


class FittedByEM(DensityMixin, Iterative, Estimator):
    """Base of densities that are fitted by EM.

    A kind of density has the parameters tol, max_iter, acceleration, random_state, verbose and checkpoint, and these methods.

    Methods
    -------
    _attributes(parameters) : Fitted attributes, by name, of the parameters of its `LatentModel`.
    _components() : The fitted parameters as `_posterior_block` wants them.
    _posterior_block(X, weight, components) : Posterior (rows, components) and log-density (rows,) of a block.
    _n_parameters() : Number of free parameters.
    """

    generative = True

    def _maximize(self, model, blocks, n_runs, X, y):
        """Run EM from so many starts, keep the best, and set what every fit reports; return the parameters."""
        with serial_blas(), self._fitting(blocks, n_runs, X=X, y=y) as fitting:
            run = best_of(
                model,
                blocks,
                spawn(generator(self.random_state), n_runs),
                fitting.iterate,
                tol=self.tol,
                acceleration=self.acceleration is not None,
                fitted=self._attributes,
            )
            for name, value in self._attributes(run.state).items():
                setattr(self, name, value)
            self.n_iter_, self.converged_, self.trace_, self.restarts_ = run.n_iter, run.converged, run.trace, run.restarts
            self.lower_bound_ = self._score(blocks)[1]
        return run.state

    def score_samples(self, X):
        """Give the log-density of each row."""
        return self._posterior(X)[1]

    def score(self, X, y=None, sample_weight=None):
        """Give the mean log-density of the rows."""
        return self._score(self._checked(X, sample_weight))[1]

    def bic(self, X, sample_weight=None):
        """Give Bayes' information criterion on rows X: the lower the better."""
        total, score = self._score(self._checked(X, sample_weight))
        return -2 * total * score + self._n_parameters() * float(np.log(total))

    def aic(self, X, sample_weight=None):
        """Give Akaike's information criterion on rows X: the lower the better."""
        total, score = self._score(self._checked(X, sample_weight))
        return -2 * total * score + 2 * self._n_parameters()

    def _posterior(self, X):
        """Posterior of each row and its log-density, in the precision of X."""
        blocks = self._checked(X)
        posterior, density = blocks.map(self._posterior_block, self._components())
        return as_output(posterior, blocks.dtype), as_output(density, blocks.dtype)

    def _score(self, blocks):
        """Total weight and mean log-density."""
        total, value = blocks.reduce(score_block, self._posterior_block, self._components())
        return total, value / total

    def _checked(self, X, sample_weight=NO_WEIGHTS):
        check_is_fitted(self)
        return self._blocks(X, sample_weight=sample_weight, reset=False, order="C")


class FiniteMixture(FittedByEM):
    """Base of mixtures; a kind of mixture has the parameters n_components and n_init and the fitted weights_ as well.

    Methods
    -------
    _draw(component, n, rng) : So many rows of one component.
    """

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and give each row its most probable component."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X):
        """Give each row its most probable component; ties go to the first."""
        return self._posterior(X)[0].argmax(axis=1)

    def predict_proba(self, X):
        """Give the probability of each component for each row."""
        return self._posterior(X)[0]

    def sample(self, n_samples=1):
        """Draw rows from the density, those of each component together; return them and their components."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng = generator(self.random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        rows = np.concatenate([self._draw(k, n, rng) for k, n in enumerate(counts)])
        return rows, np.repeat(np.arange(len(counts)), counts)

    @property
    def lower_bounds_(self):
        """Mean log-likelihood at each pass."""
        return self.trace_


def score_block(X, weight, posterior_block, components):
    """Total weight and log-likelihood of a block."""
    density = posterior_block(X, weight, components)[1]
    return (float(len(density)), float(density.sum())) if weight is None else (float(weight.sum()), float(weight @ density))
