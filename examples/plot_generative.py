"""
Digits that nobody wrote
========================

Two ways to draw rows like those of a table. The variational autoencoder has a density, with a bound that its certificate holds
against log p(x); the adversarial network has none, and is taught by another network that tells its draws from real rows.
"""

# %%
# Two latent coordinates for digits of 64 pixels: where the digits lie, and what lies where.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lemmata.generative import GenerativeAdversarialNetwork, VariationalAutoencoder
from lemmata.plot import GeneratedDisplay, ScoresDisplay

X, y = load_digits(return_X_y=True)
X = X / 16
plane = VariationalAutoencoder(2, likelihood="bernoulli", max_iter=200, tol=None, random_state=0).fit(X)
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
ScoresDisplay.from_estimator(plane, X, y, ax=axes[0])
GeneratedDisplay.from_latent_plane(plane, image_shape=(8, 8), n=14, ax=axes[1])
plt.show()

# %%
# Ten coordinates hold more. Rows that were drawn (probabilities of ink, not bits), and the way from one digit to another.

model = VariationalAutoencoder(10, likelihood="bernoulli", max_iter=200, tol=None, random_state=0).fit(X[:1500])
z = np.random.default_rng(0).standard_normal((64, 10))
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
GeneratedDisplay(model.inverse_transform(z), image_shape=(8, 8), name="drawn").plot(axes[0])
ways = [model.interpolate(X[np.argmax(y == a)], X[np.argmax(y == b)], 8) for a, b in ((0, 6), (1, 7), (3, 8), (4, 9), (5, 2))]
GeneratedDisplay(np.vstack(ways), image_shape=(8, 8), n_columns=8, name="from one digit to another").plot(axes[1])
plt.show()

# %%
# How probable are digits that it has not seen? The bound, and log p(x) by importance sampling, in nats a row.

unseen = X[1500:]
print(f"bound {model.elbo(unseen).mean():.2f}, log p(x) {model.score(unseen):.2f}")
print(model.certify(X[:1500]))

# %%
# A ring of eight heaps is where adversarial networks lose some. This one keeps them all.

rng = np.random.default_rng(0)
angle = 2 * np.pi * rng.integers(8, size=2_000) / 8
ring = 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(2_000, 2))
game = GenerativeAdversarialNetwork(2, random_state=0).fit(ring)
GeneratedDisplay.from_estimator(game, ring, n=1_000)
plt.show()
print(f"value of the game {game.value_:.3f}; at its end it is −log 4 = {-np.log(4):.3f}")
