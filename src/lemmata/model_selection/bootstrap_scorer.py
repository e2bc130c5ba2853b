"""The bootstrap's error as a scorer, so that searches and feature selectors choose by .632 or .632+.

A scorer sees a fitted model and test rows, one split after the other, and the mean over splits is what a search compares. The
.632 estimate is no such mean: it combines the fit to all rows with fits to bags. So the split splits nothing off
(`ResubstitutionSplit`), and the scorer resamples the rows that it is given.
"""

from lemmata.model_selection.bootstrap_error import bootstrap_error

KINDS = {"632": "err632", "632+": "err632_plus", "out-of-bag": "out_of_bag"}


class BootstrapScorer:
    """Score a model by minus its bootstrap error; to be used with `cv=ResubstitutionSplit()`.

    Parameters
    ----------
    kind : "632", "632+" or "out-of-bag".
    n_resamples : Bags; each is a fit.
    loss, response_method : As of `bootstrap_error`.
    random_state : Seed of the bags; the same ones for every candidate unless it is None.

    Examples
    --------
    Choose a column by .632, which needs both the fit to all rows and the fits to bags:

    >>> import numpy as np
    >>> from sklearn.feature_selection import SequentialFeatureSelector
    >>> from lemmata.linear_model import LinearRegression
    >>> from lemmata.model_selection import BootstrapScorer, ResubstitutionSplit, bootstrap_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 4))
    >>> y = 2 * X[:, 2] + rng.normal(size=30)
    >>> scorer, split = BootstrapScorer("632", n_resamples=20), ResubstitutionSplit()
    >>> selector = SequentialFeatureSelector(LinearRegression(), n_features_to_select=1, scoring=scorer, cv=split)
    >>> selector.fit(X, y).get_support()
    array([False, False,  True, False])

    Choose a number of neighbors by .632+; the score of one neighbor is the estimate itself:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from lemmata.neighbors import KNeighborsClassifier
    >>> labels = (y > 0).astype(int)
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 9]}, scoring=BootstrapScorer("632+"), cv=split)
    >>> scores = search.fit(X, labels).cv_results_["mean_test_score"]
    >>> bool(-scores[0] == bootstrap_error(KNeighborsClassifier(1), X, labels, n_resamples=50, random_state=0).err632_plus)
    True
    """

    def __init__(self, kind="632", *, n_resamples=50, loss=None, response_method="predict", random_state=0):
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
        self.kind = kind
        self.n_resamples = n_resamples
        self.loss = loss
        self.response_method = response_method
        self.random_state = random_state

    def __call__(self, estimator, X, y, sample_weight=None):
        """Give minus the error that clones of an estimator have on rows like these; larger is better."""
        found = bootstrap_error(
            estimator,
            X,
            y,
            n_resamples=self.n_resamples,
            loss=self.loss,
            response_method=self.response_method,
            sample_weight=sample_weight,
            random_state=self.random_state,
        )
        return -getattr(found, KINDS[self.kind])

    def __repr__(self):
        return f"BootstrapScorer({self.kind!r}, n_resamples={self.n_resamples})"
