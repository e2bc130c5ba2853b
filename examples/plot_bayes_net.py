"""
What explains the shortness of breath?
======================================

A patient is short of breath. It may be tuberculosis, lung cancer or bronchitis, or none of them; a stay in Asia makes the
first more likely, smoking the other two, and an X-ray cannot tell the first two apart. This is the chest clinic of Lauritzen
and Spiegelhalter (1988), with their numbers: eight variables, eight small tables, and every question has an exact answer.
"""

# %%
# The net
# -------
# An arrow goes from what is earlier to what depends on it. The table of a variable has an axis for each of its parents, and a
# last one for itself; states are "no" and "yes". Every box shows how probable its states are before anything is known.

import matplotlib.pyplot as plt

from lemmata.graphical import BayesNet
from lemmata.plot import JunctionTreeDisplay, MarginalsDisplay, NetworkDisplay

parents = {
    "Asia": [],
    "smoking": [],
    "tuberculosis": ["Asia"],
    "cancer": ["smoking"],
    "bronchitis": ["smoking"],
    "either": ["tuberculosis", "cancer"],
    "X-ray": ["either"],
    "dyspnea": ["either", "bronchitis"],
}
tables = {
    "Asia": [0.99, 0.01],
    "smoking": [0.5, 0.5],
    "tuberculosis": [[0.99, 0.01], [0.95, 0.05]],
    "cancer": [[0.99, 0.01], [0.9, 0.1]],
    "bronchitis": [[0.7, 0.3], [0.4, 0.6]],
    "either": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
    "X-ray": [[0.95, 0.05], [0.02, 0.98]],
    "dyspnea": [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.1, 0.9]]],
}
clinic = BayesNet(parents, tables, state_names={name: ["no", "yes"] for name in parents})
NetworkDisplay.from_estimator(clinic, name="The chest clinic, before anything is known")
plt.show()

# %%
# A patient comes in
# ------------------
# She is short of breath, and she has been to Asia. Boxes with evidence are shaded; the ticks show where the bars were
# before. Bronchitis is the likely explanation, but tuberculosis has become eight times as probable.

seen = {"dyspnea": "yes", "Asia": "yes"}
NetworkDisplay.from_estimator(clinic, evidence=seen, name="Short of breath, after a stay in Asia")
plt.show()

# %%
# Explaining away
# ---------------
# Smoking and a stay in Asia have nothing to do with each other, and neither have cancer and tuberculosis. But once an X-ray is
# found abnormal, they compete to explain it: that she smokes makes tuberculosis *less* probable, though smoking is no cure.

for evidence in ({"X-ray": "yes"}, {"X-ray": "yes", "smoking": "yes"}, {"X-ray": "yes", "smoking": "no"}):
    chance = clinic.marginals(evidence)["tuberculosis"][1]
    print(f"P(tuberculosis | {', '.join(f'{name} = {state}' for name, state in evidence.items())}) = {chance:.4f}")

# %%
# The graph alone tells where this can happen, whatever the tables are:

print(clinic.d_separated("tuberculosis", "smoking"))
print(clinic.d_separated("tuberculosis", "smoking", given="X-ray"))

# %%
# How much evidence changes
# -------------------------
# An X-ray is read by a doctor who is not sure. Soft evidence is a likelihood for each state: here, that he says what he said to
# 15 % of the normal and to 80 % of the abnormal pictures.

doubtful = {**seen, "X-ray": [0.15, 0.8]}
shown = ["tuberculosis", "cancer", "bronchitis", "X-ray"]
MarginalsDisplay.from_estimator(clinic, evidence=doubtful, variables=shown, name="With a doubtful X-ray")
plt.show()

# %%
# What is most probable is not put together from what is most probable for each variable alone. The assignment of all variables
# together is found by max-sum:

best = clinic.map(doubtful)
print(", ".join(f"{name}: {state}" for name, state in best.items()))

# %%
# Where the answers come from
# ---------------------------
# All answers come from a tree of cliques, compiled once. Messages go over the separators, in orange, towards the root (the
# clique with the thick edge) and back. The largest clique has three variables, so no table has more than eight numbers.

JunctionTreeDisplay.from_estimator(clinic, name="Junction tree of the clinic")
plt.show()

# %%
# The certificate checks, from the tables alone, that the tree is one in which this works, that the product of the cliques is
# that of the model, and that neighbors agree. Then the answers are marginals of the one joint distribution.

print(clinic.certify(evidence=seen))

# sphinx_gallery_thumbnail_number = 2
