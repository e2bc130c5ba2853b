"""Generative networks: the variational autoencoder and the adversarial network, and what is exact about them."""

from lemmata.generative.game import adversarial_game, gan_value, optimal_discriminator
from lemmata.generative.gan import GenerativeAdversarialNetwork
from lemmata.generative.two_samples import mmd_test
from lemmata.generative.vae import VariationalAutoencoder
from lemmata.generative.vae_law import gaussian_kl

__all__ = [
    "VariationalAutoencoder",
    "GenerativeAdversarialNetwork",
    "gaussian_kl",
    "adversarial_game",
    "gan_value",
    "optimal_discriminator",
    "mmd_test",
]
