"""
Recommendations that say how sure they are
==========================================

A few hundred people have rated some of eighty films. The model learns what they have in common, tells how sure it is of every
rating that nobody gave, and takes new people in without being fitted again.
"""

# %%
# Ratings
# -------
# Every film has a little of two genres, and everyone likes these more or less. Popular films were seen by more people.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.recommend import ProbabilisticMatrixFactorization, ndcg_at_k, recall_at_k

rng = np.random.default_rng(1)
n_people, n_films = 400, 80
taste, genre = rng.standard_normal((n_people, 2)), rng.standard_normal((n_films, 2))
seen = rng.random((n_people, n_films)) < np.linspace(0.6, 0.05, n_films)
person, film = np.nonzero(seen)
stars = 3 + 0.5 * rng.standard_normal(n_people)[person] + 0.5 * rng.standard_normal(n_films)[film]
stars += (taste[person] * genre[film]).sum(axis=1) + 0.6 * rng.standard_normal(len(person))
pairs = np.column_stack([person, film])
held_out = rng.random(len(stars)) < 0.1
print(f"{len(stars)} ratings of {n_people * n_films} possible ones, a tenth of them held out")

# %%
# How many factors?
# -----------------
# The held-out error falls until there are as many factors as genres. More factors are held back by the prior.

numbers = range(1, 7)
errors, noise = [], []
for k in numbers:
    model = ProbabilisticMatrixFactorization(k, prior_precision=2.0, random_state=0).fit(pairs[~held_out], stars[~held_out])
    errors.append(model.rmse(pairs[held_out], stars[held_out]))
    noise.append(np.sqrt(model.noise_variance_))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(numbers, errors, "o-", label="held-out error")
axes[0].plot(numbers, noise, "s-", label="estimated noise")
axes[0].axhline(0.6, color="gray", linestyle=":", label="true noise")
axes[0].set(xlabel="factors", ylabel="stars")
axes[0].legend(frameon=False)

# %%
# How sure?
# ---------
# The doubt about a film shrinks with the number of its ratings, and the intervals hold as often as they say.

model = ProbabilisticMatrixFactorization(2, prior_precision=2.0, random_state=0).fit(pairs[~held_out], stars[~held_out])
deviation = model.predict_dist(pairs[held_out]).std()
counts = np.bincount(film[~held_out], minlength=n_films)[film[held_out]]
axes[1].plot(counts, deviation, ".", alpha=0.4)
axes[1].axhline(np.sqrt(model.noise_variance_), color="gray", linestyle=":")
axes[1].set(xlabel="ratings of the film", ylabel="standard deviation of a prediction")
plt.show()

low, high = model.predict_interval(pairs[held_out], level=0.9).T
print(f"{np.mean((low < stars[held_out]) & (stars[held_out] < high)):.0%} of the held-out ratings lie in their 90 % intervals")

# %%
# The certificate recomputes every residual: each person and each film solves a ridge regression of its own.

model.certify(pairs[~held_out], stars[~held_out])

# %%
# A new guest
# -----------
# Somebody liked film 0 and disliked film 1. That is a ridge regression with two rows, and enough for a first list.

films, expected = model.recommend_for([0, 1], [5.0, 1.0], n=5)
print("first recommendations:", ", ".join(f"film {f} ({e:.1f})" for f, e in zip(films, expected, strict=True)))

# %%
# Lists are judged by what was held out: how many of the films that somebody liked are among the first ten?

liked = np.column_stack([pairs[held_out], stars[held_out]])[stars[held_out] > 4]
print(f"recall at 10: {recall_at_k(model, liked, k=10):.2f}, NDCG at 10: {ndcg_at_k(model, liked, k=10):.2f}")
