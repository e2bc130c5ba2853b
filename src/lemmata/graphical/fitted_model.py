"""What `BayesNet` and `LogLinearModel` share: numbers that are given or fitted, and rows with gaps that are filled in."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from lemmata.core.estimator import Estimator
from lemmata.graphical.evidence import some
from lemmata.graphical.model import DiscreteModel


class Pairs(NamedTuple):
    """A dictionary as a list of (key, value): keys in files are texts, and names of variables may be numbers or tuples."""

    pairs: list


class FittedModel(DiscreteModel, Estimator):
    """A discrete model whose numbers are a parameter, or an attribute that `fit` sets: of the same name and an underscore."""

    generative = True
    _numbers = ""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = getattr(self, self._numbers) is None
        return tags

    def __sklearn_is_fitted__(self):
        return getattr(self, self._numbers) is not None or f"{self._numbers}_" in self.__dict__

    def __getstate__(self):
        state = super().__getstate__()
        return {key: Pairs(list(value.items())) if type(value) is dict else value for key, value in state.items()}

    def __setstate__(self, state):
        super().__setstate__({key: dict(value.pairs) if isinstance(value, Pairs) else value for key, value in state.items()})

    def __repr__(self):
        if self.__sklearn_is_fitted__():
            with suppress(ValueError):  # what is not right is told when it is used
                return f"<{type(self).__name__} of {len(self.variables)} variables ({some(self.variables, 4)})>"
        return super().__repr__()

    def predict(self, X):
        """Fill in what was not seen: {variable: labels}, gaps filled with the most probable state given the rest of the row.

        Each gap is filled for itself; the most probable filling of all gaps of a row together is `map`'s answer. In a row that
        the model holds for impossible, gaps are filled as if nothing had been seen.

        Examples
        --------
        >>> from lemmata.graphical import BayesNet
        >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
        >>> net.predict({"rain": [None, None, 0], "wet": [0, 1, 1]})["rain"]
        array([0, 1, 0])
        """
        from lemmata.graphical.learning import filled

        return filled(self, X)

    def predict_proba(self, X, variable):
        """Give the chances of the states of a variable (columns) given the rest of each row; its own column is not looked at.

        Examples
        --------
        >>> from lemmata.graphical import BayesNet
        >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
        >>> net.predict_proba({"wet": [0, 1, None]}, "rain").round(4)
        array([[0.9863, 0.0137],
               [0.2963, 0.7037],
               [0.8   , 0.2   ]])
        """
        from lemmata.graphical.learning import chances_of

        return chances_of(self, X, variable)

    def _likelihood(self, X, sample_weight):
        """Give the weight of all rows, and the sum of their log-likelihoods."""
        from lemmata.graphical.learning import total_log_likelihood

        return total_log_likelihood(self, X, sample_weight)

    def score(self, X, y=None, sample_weight=None):
        """Give the mean log-likelihood of the rows."""
        total, value = self._likelihood(X, sample_weight)
        return value / total

    def aic(self, X, sample_weight=None):
        """Give Akaike's information criterion on rows X: the lower the better."""
        return 2 * self.n_parameters - 2 * self._likelihood(X, sample_weight)[1]

    def bic(self, X, sample_weight=None):
        """Give Bayes' information criterion on rows X: the lower the better."""
        total, value = self._likelihood(X, sample_weight)
        return self.n_parameters * float(np.log(total)) - 2 * value
