"""Naive Bayes: columns that are independent within a class."""

from lemmata.naive_bayes.bernoulli import BernoulliNB
from lemmata.naive_bayes.categorical import CategoricalNB
from lemmata.naive_bayes.gaussian_nb import GaussianNB
from lemmata.naive_bayes.multinomial import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "GaussianNB", "MultinomialNB"]
