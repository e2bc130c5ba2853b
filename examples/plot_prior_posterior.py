"""
Beliefs that move with the data
===============================

A coin was bent. How often will it show heads? A prior says what was believed before, Bayes' rule what is believed after, and
the loss says which number to report.
"""

# %%
# The prior Beta(2, 2) believes in fairness, weakly. After 10, 50 and 250 tosses the posterior narrows around the truth, 0.7. It
# does not matter whether the tosses come at once or one by one: `check_posterior` proves it.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.decision import estimate
from lemmata.plot import PosteriorDisplay
from lemmata.probability import Bernoulli, Beta, check_posterior, log_evidence, posterior

tosses = Bernoulli(0.7).sample(250, random_state=1)
prior = Beta(2, 2)
after = {f"after {n} tosses": posterior(prior, "bernoulli", tosses[:n]) for n in (10, 50, 250)}
PosteriorDisplay.from_distributions(prior, after, name="How often heads?")
plt.show()

# %%

check_posterior(prior, "bernoulli", tosses)

# %%
# Which number to report depends on what errors cost: the mean for squared errors, the median for absolute ones, the mode for
# all or nothing, and for a loss in which too high is four times worse than too low, the quantile at 1/5.

belief = after["after 10 tosses"]


def too_high_is_worse(guess, truth):
    """Four times the error if the guess is too high."""
    return np.where(guess > truth, 4 * (guess - truth), truth - guess)


for loss in ("squared", "absolute", "zero-one", too_high_is_worse):
    name = loss if isinstance(loss, str) else "too high is four times worse"
    print(f"{name:30} {float(estimate(belief, loss)):.3f}")
print(f"{'quantile at 1/5':30} {float(belief.icdf(0.2)):.3f}")

# %%
# Two priors can be compared by how probable they made the data: the evidence. The one who was sure of fairness loses.

for name, belief in {"weak": prior, "sure of fairness": Beta(200, 200)}.items():
    print(f"{name:18} log evidence {log_evidence(belief, 'bernoulli', tosses):.1f}")
