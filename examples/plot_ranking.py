"""
Who is best, and how sure is that?
==================================

Twelve teams, and not every pair has met. A walk goes from team to team, always towards the winners; the time that it spends
with a team is the team's rating. A few games more or less would move the ratings, and the picture says by how much.
"""

# %%
# A season
# --------
# Every team has a strength, which nobody knows. Each has met some of the others, and the scores follow the strengths, with
# luck.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.markov import MarkovChain, MarkovRanker
from lemmata.plot import RankingDisplay, TransitionGraphDisplay

rng = np.random.default_rng(3)
names = np.array(["Ants", "Bees", "Crabs", "Doves", "Eels", "Foxes", "Geese", "Hares", "Ibises", "Jays", "Koi", "Larks"])
strength = np.linspace(1.2, -1.2, 12)
first, second = rng.integers(12, size=(2, 520))
met = first != second
first, second = first[met], second[met]
goals = rng.poisson(np.exp(0.4 + 0.5 * np.stack([strength[first] - strength[second], strength[second] - strength[first]])))
games = list(zip(names[first].tolist(), names[second].tolist(), *goals.tolist(), strict=True))
print(f"{len(games)} games, for instance {games[0]} and {games[1]}")

# %%
# The ranking
# -----------
# Thick lines are 95 % intervals of each rating. The ranks on the right hold for all teams at once: no order that they exclude
# is compatible with the games. The strengths fall from Ants to Larks; the ranking mostly agrees, and where it does not, it
# says that it does not know.

model = MarkovRanker().fit(games)
RankingDisplay.from_estimator(model, name="The season, at 95 %")
plt.show()

# %%
# The certificate gathers the games again. The ratings are the stationary law of the walk, right in every digit that is checked.

model.certify(games)

# %%
# Teams that never met
# --------------------
# Two leagues without a game between them have no common order, and to invent one would be a mistake. What can be had is an
# imaginary team with which everyone draws: then the leagues are as good as each other, on average.

apart = [*games, ("Moles", "Newts", 2, 1), ("Newts", "Moles", 1, 1)]
try:
    MarkovRanker().fit(apart)
except ValueError as error:
    print(error)
print("with prior=1 the first four are", *MarkovRanker(prior=1.0).fit(apart).ranking_[:4])

# %%
# Where a chain goes
# ------------------
# The same machinery describes any chain. Of the weather below, "flood" and "drought" are classes that are never left, and the
# chain settles in one of them; from "sun" the chances are as printed.

weather = MarkovChain(
    [
        [0.5, 0.4, 0.1, 0.0, 0.0],
        [0.4, 0.3, 0.0, 0.3, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.2, 0.8],
        [0.0, 0.0, 0.0, 0.6, 0.4],
    ],
    states=["sun", "rain", "drought", "flood", "mud"],
)
ends = weather.settling()
print(f"from sun: drought {ends.probabilities[0, 0]:.3f}, flood and mud {ends.probabilities[0, 1]:.3f}")
print(weather.ergodicity().reason)
TransitionGraphDisplay.from_estimator(weather, name="Two classes that are never left")
plt.show()

# sphinx_gallery_thumbnail_number = 1
