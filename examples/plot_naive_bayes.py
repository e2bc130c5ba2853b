"""
Half a digit
============

A generative classifier knows how likely every row is, so it knows how likely every part of a row is as well. Cover half of an
image, and naive Bayes sums over all that could be under the cover: the pixels that are not seen drop out of its product, and
what is left is exactly what can be said.
"""

# %%
# What a class looks like
# -----------------------
# Digits of eight by eight pixels, ink or no ink. Within a class each pixel has a chance of ink, and pixels are taken to be
# independent: wrong, as the draws below show (ink scattered as from a spray can), and yet enough to read by. The upper row are
# the chances, the lower a draw from each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from lemmata.naive_bayes import BernoulliNB

X, y = load_digits(return_X_y=True)
ink = (X > 7).astype(float)  # of 16 shades of gray
train, test, digit, truth = train_test_split(ink, y, test_size=0.5, random_state=0)
model = BernoulliNB().fit(train, digit)

drawn, labels = model.sample(400, random_state=0)
figure, axes = plt.subplots(2, 10, figsize=(9, 2), layout="constrained")
for c in range(10):
    axes[0, c].imshow(np.exp(model.feature_log_prob_[c]).reshape(8, 8), cmap="Blues", vmin=0, vmax=1)
    axes[1, c].imshow(drawn[labels == c][0].reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# The chances are counts: how often a pixel had ink in the images of a class, with one imaginary image that has it and one that
# has not. The certificate counts again.

model.certify(train, digit)

# %%
# Cover the lower half
# --------------------
# A covered pixel is NaN, not white. The bars are the probabilities of the digits given the upper half alone: where two digits
# share it, the model says so.

half = test.copy()
half[:, 32:] = np.nan
p = model.predict_proba(half)
doubt = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
order = np.argsort(-doubt)
shown = [int(order[0]), int(order[40]), int(order[80]), int(order[160]), int(order[300])]

figure, axes = plt.subplots(2, 5, figsize=(9, 3.6), layout="constrained", height_ratios=[1.3, 1])
for ax, bars, i in zip(axes[0], axes[1], shown, strict=True):
    ax.imshow(test[i].reshape(8, 8), cmap="Greys", vmin=0, vmax=1.4)
    ax.add_patch(plt.Rectangle((-0.5, 3.5), 8, 4, facecolor="#e4ddd0", alpha=0.88, hatch="//", edgecolor="#b9ad97", lw=0))
    ax.set(xticks=[], yticks=[], title=f"it is a {truth[i]}")
    bars.bar(range(10), p[i], color=["#3b7dd8" if c == truth[i] else "0.7" for c in range(10)])
    bars.set(ylim=(0, 1), xticks=range(10), yticks=[])
    bars.spines[["top", "right", "left"]].set_visible(False)
plt.show()

# %%
# Summing is not filling
# ----------------------
# The usual ways to get rid of holes are to call them white, or to fill in what the column mostly holds. Both tell the model
# something that nobody saw. The more is covered, the dearer that is.

rng = np.random.default_rng(0)
shares = np.linspace(0, 0.95, 12)
means = train.mean(axis=0)
scores = {"summed over": [], "filled with the commoner value": [], "taken for white": []}
for share in shares:
    covered = rng.random(test.shape) < share
    fillings = (np.where(covered, np.nan, test), np.where(covered, means > 0.5, test), np.where(covered, 0.0, test))
    for name, filled in zip(scores, fillings, strict=True):
        scores[name].append(model.score(filled, truth))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, values), color in zip(scores.items(), ("#3b7dd8", "#d08c1d", "#8a8a8a"), strict=True):
    ax.plot(shares, values, color=color, marker="o", ms=4, label=name)
ax.legend(frameon=False, labelcolor="linecolor", loc="lower left", bbox_to_anchor=(0, 0.16))
ax.axhline(0.1, color="black", lw=0.8, ls=(0, (4, 3)))
ax.annotate("a guess", (0, 0.1), (0, 4), textcoords="offset points", fontsize=9)
ax.set(xlabel="share of the pixels that are covered", ylabel="share of the digits read", ylim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# sphinx_gallery_thumbnail_number = 2
