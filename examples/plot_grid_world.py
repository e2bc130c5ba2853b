"""
A walk on the ice, planned and learned
======================================

The frozen lake of Gymnasium: eight by eight cells, four ways to step, and the ice is slippery, so that a step goes where it was
meant to only once in three times. The model is known, so the best policy can be planned, with a proof. An agent that is not
told the model learns by trying, and the model says how far it got.
"""

# %%
# The plan. Arrows are what to do: near a hole, walk into the wall and let the ice do the rest.

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

from lemmata.plot import GridWorldDisplay, ReturnsDisplay
from lemmata.rl import MDP, QLearning, evaluate_policy, value_iteration

env = gymnasium.make("FrozenLake-v1", map_name="8x8")
lake = MDP.from_gymnasium(env, 0.99)
plan = value_iteration(lake)
cells = env.unwrapped.desc.astype(str)
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
policy = np.where(lake.terminal, -1, plan.policy)
GridWorldDisplay(plan.value, (8, 8), policy=policy, marks=cells, name="planned").plot(axes[0])

agent = QLearning(epsilon=0.3, n_steps=3_000_000, random_state=0).fit(lake)
learned = evaluate_policy(lake, agent.policy_).value
policy = np.where(lake.terminal, -1, agent.policy_)
GridWorldDisplay(learned, (8, 8), policy=policy, marks=cells, name="learned, and what that is worth").plot(axes[1])
plt.show()

# %%
# What is proved of the plan, and what the learned policy loses.

print(plan.certify())
print(f"The learned policy loses at most {(plan.value - learned).max():.4f} from any cell.")

# %%
# How it was learned: Q-learning with one table, with two that judge each other, and Expected Sarsa, five seeds each. An episode
# that reaches the goal returns 1; agents that explore a tenth of the time keep falling in.

kinds = {"Q-learning": {}, "double Q-learning": {"double": True}, "Expected Sarsa": {"target": "expected"}}
agents = {
    name: [QLearning(n_steps=1_000_000, random_state=seed, **options).fit(lake) for seed in range(5)]
    for name, options in kinds.items()
}
ReturnsDisplay.from_estimators(agents)
plt.show()
