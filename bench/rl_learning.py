"""Learning by trying: steps per second of tables, and how often a pole is kept up.

The bars are numbers: 5,000,000 steps of Q-learning per second on an MDP; and on CartPole-v1 a mean return of at least 475 over
100 episodes for at least 8 of 10 seeds, within 5 minutes each. A plain loop over Gymnasium, as tutorials have it, stands
beside; it does the same updates. The loss of a policy is the certificate's: a proof against the known law.
"""

import time
import warnings

import gymnasium
import numpy as np

from lemmata.rl import MDP, QLearning, Reinforce, TDLambda, TDNetwork

STEPS, PLAIN_STEPS, SEEDS = 10_000_000, 200_000, 10
FASTEST, SOLVED, ENOUGH, LONGEST = 5e6, 475.0, 8, 300.0


def plain_loop(env, gamma, n_steps, epsilon=0.1):
    """Run Q-learning as a tutorial has it; return the steps per second."""
    rng, n = np.random.default_rng(0), env.action_space.n
    Q, N = np.zeros((env.observation_space.n, n)), np.zeros((env.observation_space.n, n))
    s, _ = env.reset(seed=0)
    start = time.perf_counter()
    for _ in range(n_steps):
        a = int(rng.integers(n)) if rng.random() < epsilon else int(Q[s].argmax())
        after, r, ended, cut, _ = env.step(a)
        N[s, a] += 1
        Q[s, a] += (r + gamma * (not ended) * Q[after].max() - Q[s, a]) / (1 + (1 - gamma) * (N[s, a] - 1))
        s = env.reset()[0] if ended or cut else after
    return n_steps / (time.perf_counter() - start)


def rate(model, env):
    """Fit the best of three times; return the model and its steps per second."""
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        model.fit(env)
        best = min(best, time.perf_counter() - start)
    return model, model.n_steps_ / best


def tables():
    """Measure steps per second on the environments whose law is known."""
    lines = []
    for name in ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"):
        env, gamma = gymnasium.make(name), 0.95
        mdp = MDP.from_gymnasium(env, gamma)
        plain = plain_loop(gymnasium.make(name), gamma, PLAIN_STEPS)
        model, speed = rate(QLearning(epsilon=0.3, n_steps=STEPS, random_state=0), mdp)
        loss = model.certify(mdp)["policy loss"].value
        bar = f"≥ {FASTEST:.0e} {'✓' if speed >= FASTEST else '✗'}"
        lines.append(f"| Q-learning, {name} as MDP | {speed:.3g} | {speed / plain:.0f}× | {loss:.1e} | {bar} |")
        model, speed = rate(QLearning(gamma, epsilon=0.3, n_steps=PLAIN_STEPS, random_state=0), env)
        loss = model.certify(mdp)["policy loss"].value
        lines.append(f"| Q-learning, {name} in Gymnasium | {speed:.3g} | {speed / plain:.1f}× | {loss:.1e} | |")
        model, speed = rate(TDLambda(random_state=0, n_steps=STEPS // 5), mdp)
        lines.append(f"| TD(0.9), {name} as MDP | {speed:.3g} | {speed / plain:.0f}× | | |")
    return lines


def poles():
    """Measure the seeds for which a pole is kept up, with the default parameters."""
    lines = []
    for learner in (Reinforce, TDNetwork):
        seconds, scores = [], []
        for seed in range(SEEDS):
            env, start = gymnasium.make("CartPole-v1"), time.perf_counter()
            model = learner(random_state=seed).fit(env)
            seconds.append(time.perf_counter() - start)
            scores.append(model.score(env, n_episodes=100, random_state=1000 + seed))
        solved, slowest = int((np.array(scores) >= SOLVED).sum()), max(seconds)
        reached = solved >= ENOUGH and slowest <= LONGEST
        what = f"{learner.__name__}, {model.n_steps:,} steps"
        bar = f"≥ {ENOUGH} of {SEEDS}, ≤ {LONGEST:g} s {'✓' if reached else '✗'}"
        lines.append(f"| {what} | {solved} of {SEEDS} | {min(scores):.1f} | {np.mean(seconds):.1f} | {slowest:.1f} | {bar} |")
    return lines


def report() -> str:
    """Measure everything once the kernels are compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = MDP([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]], [0.0, 1.0], 0.9)
        for learner in (QLearning, TDLambda):
            learner(n_steps=100).fit(small)
            learner(n_steps=100).fit(gymnasium.make("FrozenLake-v1"))
        for learner in (Reinforce, TDNetwork):
            learner(n_steps=5000).fit(gymnasium.make("CartPole-v1"))
        head = ["| what | steps per second | over a plain loop | policy loss, proved | bar |", "|---|---:|---:|---:|---|"]
        second = [
            "",
            "| CartPole-v1 | mean return ≥ 475 | least | seconds | slowest | bar |",
            "|---|---:|---:|---:|---:|---|",
        ]
        return "\n".join([*head, *tables(), *second, *poles()])


if __name__ == "__main__":
    print(report())
