"""What all topic models share: documents go in as counts, topics come out as laws of words."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from lemmata.core.blocks import Largest
from lemmata.core.data import is_sparse
from lemmata.core.estimator import NO_WEIGHTS, Estimator, Iterative, as_output
from lemmata.decomposition.cuts import even
from lemmata.topic.coherence import coherence, ranked

ENTRIES = 1 << 15  # stored counts of a block at least: documents take many steps over each


def extent_block(X, weight):
    """Largest of minus the counts, and how many words and documents a block has."""
    values = X.data if is_sparse(X) else X
    lengths = np.asarray(X.sum(axis=1, dtype=float)).ravel()
    weight = np.ones(len(lengths)) if weight is None else weight
    return Largest(float(-values.min(initial=0.0))), float(weight @ lengths), float(weight.sum())


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Iterative, Estimator):
    """Base of models that have the laws of words `topic_word_` (topics, words), rows that sum to one."""

    def __sklearn_tags__(self):
        """Counts, sparse or not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _documents(self, X, sample_weight=NO_WEIGHTS, *, reset=False):
        """Validate documents; return them in blocks, and how many words and documents they are."""
        blocks = even(self._blocks(X, sample_weight=sample_weight, reset=reset, order="C"), self.n_components, ENTRIES)
        lowest, n_tokens, n_documents = blocks.reduce(extent_block)
        if lowest.value > 0:
            name = type(self).__name__
            raise ValueError(f"Negative values in data passed to {name}: counts are at least 0, and one is {-lowest.value:g}.")
        return blocks, (n_tokens, n_documents)

    def top_words(self, n=10, feature_names=None):
        """List the n most probable words of each topic, by name.

        Names are those given, those of the columns of the fit, or the numbers of the columns.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else np.asarray(feature_names, dtype=object)
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"feature_names must name {self.n_features_in_} words, got {len(names)} names.")
        return [own.tolist() if names is None else [str(names[w]) for w in own] for own in ranked(self.topic_word_, n)]

    def coherence(self, X, *, top=10, measure="c_npmi"):
        """Measure how much the top words of each topic keep company in documents X; see `lemmata.topic.coherence`."""
        blocks, _ = self._documents(X)
        return coherence(self.topic_word_, blocks, top=top, measure=measure)

    def inverse_transform(self, X):
        """Give the probability of every word in documents with these shares of topics, (n_samples, n_features)."""
        check_is_fitted(self)
        shares = check_array(X, dtype=[np.float64, np.float32])
        if shares.shape[1] != self.n_components:
            raise ValueError(f"X has {shares.shape[1]} columns, and there are {self.n_components} topics.")
        return as_output(shares @ self.topic_word_, shares.dtype)

    @property
    def _n_features_out(self):
        return self.n_components
