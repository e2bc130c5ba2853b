"""What the linear classifiers share: scores x·w + b, one for two classes, else one for each class, and the labels they give."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import Classifier, as_output
from lemmata.linear_model.logistic_loss import scores_of


def score_block(X, weight, coef, intercept):
    """Scores of a block, (n, k)."""
    return scores_of(X, coef, intercept)


def decision_block(X, weight, coef, intercept):
    """Scores of a block; with two classes, those of the second."""
    scores = scores_of(X, coef, intercept)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def label_block(X, weight, coef, intercept, classes):
    """Labels of a block: the class of the highest score, the first of equals; the second of two if its score is positive."""
    scores = scores_of(X, coef, intercept)
    return classes[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]


class LinearClassifier(Classifier):
    """Base of classifiers with linear scores, in `coef_` (k, d) and `intercept_` (k,); k = 1 for two classes."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X):
        """Give the score of the second class of two, (n,), or the scores of all classes, (n, k)."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return as_output(blocks.map(decision_block, *self._parameters()), blocks.dtype)

    def predict(self, X):
        """Give each row the class with the highest score."""
        check_is_fitted(self)
        return self._blocks(X, reset=False).map(label_block, *self._parameters(), self.classes_)

    def _scores(self, X):
        """Return the scores of rows, (n, k), and the precision of the rows."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return blocks.map(score_block, *self._parameters()), blocks.dtype

    def _parameters(self):
        """Give coefficients (d, k) and intercepts (k,) in float64, checked before a compiled kernel indexes them."""
        k = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.coef_.shape != (k, self.n_features_in_) or self.intercept_.shape != (k,):
            raise ValueError(f"coef_ has the shape {self.coef_.shape}, which is not that of a fit.")
        return np.ascontiguousarray(self.coef_.T, dtype=float), self.intercept_.astype(float)

    def _store(self, coef, intercept, dtype):
        self.coef_, self.intercept_ = as_output(np.ascontiguousarray(coef.T), dtype), as_output(intercept, dtype)
