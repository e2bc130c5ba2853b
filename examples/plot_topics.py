"""
What the pages of a manual are about
====================================

The documentation of scikit-learn comes with it, as a text for each class and each function. Nobody told latent Dirichlet
allocation what machine learning is; it is given how often each word occurs on each page, and finds ten topics.
"""

# %%
# Pages as counts of words
# ------------------------
# Examples are left out, since they are code; so are words on fewer than six pages or on more than a third of them.

import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

from lemmata.plot import TopicWordsDisplay
from lemmata.topic import LatentDirichletAllocation

texts = {name: inspect.getdoc(thing) or "" for name, thing in all_estimators() + all_functions()}
pages = {name: text.split("Examples\n---")[0] for name, text in texts.items() if len(text) > 400}
vectorizer = CountVectorizer(stop_words="english", token_pattern=r"[a-z]{3,}", min_df=6, max_df=0.3)
X = vectorizer.fit_transform(pages.values())
names, words = np.array(list(pages)), vectorizer.get_feature_names_out()
print(f"{X.shape[0]} pages, {X.shape[1]:,} words, {X.sum():,} times")

# %%
# The topics
# ----------
# Each is a law of words; its most probable words say what it is about. Small priors make topics that prefer few words, and
# pages that have few topics.

model = LatentDirichletAllocation(10, doc_topic_prior=0.1, topic_word_prior=0.1, random_state=0).fit(X)
TopicWordsDisplay.from_estimator(model, words=words, top=8, numbers=range(8))
plt.show()

# %%
# Every page has its shares of the topics. Here are the pages that each topic has most of.

shares, length = model.transform(X), np.asarray(X.sum(axis=1)).ravel()
for topic, own in zip(model.top_words(3, words), shares.T, strict=True):
    best = np.argsort(-own * np.sqrt(length))[:3]
    print(f"{', '.join(topic):40}{', '.join(names[best])}")

# %%
# Is it a good fit?
# -----------------
# The fit has maximized a lower bound of the evidence. The certificate takes every page through its own steps again, computes
# the counts that each topic can expect, and finds the topics where these counts put them.

model.certify(X)

# %%
# Such a fixed point is one of many: another start ends in other topics, of nearly the same bound. Words that go together in a
# topic should go together on pages, too; coherence measures that, from −1 (never) to 1 (only together).

for words_of_topic, value in zip(model.top_words(4, words), model.coherence(X), strict=True):
    print(f"{value:5.2f}  {', '.join(words_of_topic)}")

# %%
# How many topics?
# ----------------
# Pages that the fit has not seen tell. Half of the words of such a page say what it is about, and the model is asked for the
# other half: the perplexity is the number of equally probable words among which it is as good as lost. One topic is the
# frequencies of words in the whole manual.

rng = np.random.default_rng(0)
order = rng.permutation(X.shape[0])
seen, unseen = X[np.sort(order[100:])], X[np.sort(order[:100])]
numbers, settings = [1, 2, 5, 10, 20], {"doc_topic_prior": 0.1, "topic_word_prior": 0.1, "tol": 1e-3, "random_state": 0}
perplexity = [LatentDirichletAllocation(k, **settings).fit(seen).perplexity(unseen) for k in numbers]
_, ax = plt.subplots(figsize=(5, 3.2))
ax.plot(numbers, perplexity, "o-")
ax.set(xlabel="topics", ylabel="perplexity of unseen pages", xticks=numbers)
plt.show()
