"""
What the weather was, from what people carried
==============================================

Nobody noted the weather, but somebody counted umbrellas and sunglasses at the door, every day. A hidden Markov model has days
of two kinds that tend to last, and says which day was of which kind.
"""

# %%
# Days that were not noted
# ------------------------
# The chain stays in its state nine times out of ten. What it emits overlaps: a day tells little, its neighbors tell more.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.hmm import GaussianHMM
from lemmata.mixture import GaussianMixture
from lemmata.plot import StatesDisplay

rng = np.random.default_rng(4)
weather = [0]
for _ in range(149):
    weather.append(weather[-1] if rng.random() < 0.92 else 1 - weather[-1])
weather = np.array(weather)
X = np.column_stack([rng.normal(12 - 5 * weather, 4), rng.normal(4 + 3 * weather, 2.5)])
model = GaussianHMM(2, random_state=0).fit(X)
StatesDisplay.from_estimator(model, X)
plt.show()

# %%
# The order of the rows is worth something: a mixture, which sees the same rows in a bag, is right less often.

mixture = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
for name, found in (("mixture", mixture.predict(X)), ("hidden Markov model", model.predict(X))):
    right = max(np.mean(found == weather), np.mean(found != weather))
    print(f"{name}: {right:.0%} of the days")

# %%
# Three answers for the same day: given the past only (the filter), given everything, and on the best path as a whole.

day = int(np.abs(model.filter(X)[:, 0] - model.predict_proba(X)[:, 0]).argmax())
print(f"day {day}: {model.filter(X)[day].round(2)} by the filter, {model.predict_proba(X)[day].round(2)} with hindsight")

# %%
# The certificate proves the path the best of all 2¹⁵⁰, and the fit a stationary point.

model.certify(X)

# %%
# Days whose counts were lost are no obstacle: their rows are averaged over.

holes = X.copy()
holes[60:70] = np.nan
StatesDisplay.from_estimator(GaussianHMM(2, random_state=0).fit(holes), holes, column=0, name="ten days lost")
plt.show()
