"""The recursions of hidden Markov models, compiled: forward, backward, Viterbi, and drawing paths.

A chain with start π and transitions P is in state sₜ and emits row xₜ with the log-density ℓₜ(s). Everything here takes these
log-densities, so one implementation serves every law of emissions; a missing row has ℓₜ = 0. With the densities of a row
divided by their largest, bₜ(s) = exp(ℓₜ(s) − maxₛ ℓₜ), and the forward variables scaled to sum to one,

    αₜ(s) = bₜ(s) Σᵣ αₜ₋₁(r) P(r, s) / cₜ,   log p(x₁…x_T) = Σₜ (log cₜ + maxₛ ℓₜ),

so nothing underflows, however long the sequence; αₜ is the filter P(sₜ|x₁…xₜ). Backward, with any scale,

    βₜ₋₁(r) ∝ Σₛ P(r, s) bₜ(s) βₜ(s),   P(sₜ|x) ∝ αₜ βₜ,   P(sₜ₋₁ = r, sₜ = s|x) ∝ αₜ₋₁(r) P(r, s) bₜ(s) βₜ(s).

Of the last only the sum over time is wanted, and P is left out of it: what is summed is the derivative of the log-likelihood by
P(r, s), and its product with P(r, s) the expected number of such steps.

Viterbi's recursion vₜ(s) = ℓₜ(s) + maxᵣ (vₜ₋₁(r) + log P(r, s)) keeps its values and not where each maximum was: on the way
back only the states of one path are asked for, and their maxima are looked for again. Of several that are equal the first
counts.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials

CHUNK = 4096  # numbers whose exponentials are taken at a time


@kernel
def scale_rows(logs, tops):
    """Replace log-densities (n, k) by densities relative to the largest of each row, whose logarithm goes to tops."""
    n, k = logs.shape
    for t in range(n):
        top = -np.inf
        for s in range(k):
            top = max(top, logs[t, s])
        tops[t] = top
        if top == -np.inf:  # impossible in every state: the likelihood is 0, whatever the scale
            top = 0.0
        for s in range(k):
            logs[t, s] -= top
    flat, bits = logs.reshape(n * k), np.empty(CHUNK, np.int64)
    for start in range(0, n * k, CHUNK):
        part = flat[start : start + CHUNK]
        exponentials(part, len(part), bits, bits.view(np.float64))


@kernel
def forward(densities, tops, before, transition, alpha):
    """Write the filter of the rows of a sequence, or of its next rows; return their log-likelihood.

    Parameters
    ----------
    densities, tops : Of the rows, relative and their scale.
    before : Law of the first state, before its row is seen.
    alpha : (n, k), the filter.
    """
    n, k = densities.shape
    law, value = before.copy(), 0.0
    for t in range(n):
        now, b, total = alpha[t], densities[t], 0.0
        for s in range(k):
            now[s] = law[s] * b[s]
            total += now[s]
        value += np.log(total) + tops[t]
        share = 1.0 / total if total > 0.0 else 0.0
        for s in range(k):
            now[s] *= share
        if t + 1 < n:
            law[:] = 0.0
            for r in range(k):
                a, row = now[r], transition[r]
                for s in range(k):
                    law[s] += a * row[s]
    return value


@kernel
def smooth(densities, turned, alpha, steps):
    """Turn the filter of a sequence into P(state|all rows), in place; add the derivative by each transition to steps.

    `turned` is the transposed transition matrix.
    """
    n, k = densities.shape
    beta, ahead, w = np.ones(k), np.empty(k), np.empty(k)
    for t in range(n - 1, 0, -1):
        now, b, total = alpha[t - 1], densities[t], 0.0
        ahead[:] = 0.0
        for s in range(k):
            w[s] = b[s] * beta[s]
            row, x = turned[s], w[s]
            for r in range(k):
                ahead[r] += x * row[r]
        for r in range(k):
            total += now[r] * ahead[r]
        share = 1.0 / total if total > 0.0 else 0.0
        for r in range(k):
            x, row = now[r] * share, steps[r]
            for s in range(k):
                row[s] += x * w[s]
        for r in range(k):
            now[r] *= ahead[r] * share
            beta[r] = ahead[r] * share


@kernel
def expect(densities, tops, lengths, start, transition, turned, alpha, first, steps):
    """Write P(state|all rows) of all rows of sequences one after the other; return their log-likelihood.

    Adds the laws of the first states to `first` and the derivatives by the transitions to `steps`.
    """
    value, at = 0.0, 0
    for q in range(len(lengths)):
        rows = slice(at, at + lengths[q])
        value += forward(densities[rows], tops[rows], start, transition, alpha[rows])
        smooth(densities[rows], turned, alpha[rows], steps)
        for s in range(len(start)):
            first[s] += alpha[at, s]
        at += lengths[q]
    return value


@kernel
def viterbi(logs, start, transition, values, path):
    """Write the most probable path of a sequence; return its log joint probability. `start` and `transition` are logarithms."""
    n, k = logs.shape
    best = np.empty(k)
    for s in range(k):
        values[0, s] = start[s] + logs[0, s]
    for t in range(1, n):
        before, now, row = values[t - 1], values[t], logs[t]
        best[:] = -np.inf
        for r in range(k):
            x, step = before[r], transition[r]
            for s in range(k):
                best[s] = max(best[s], x + step[s])
        for s in range(k):
            now[s] = best[s] + row[s]
    last = 0
    for s in range(1, k):
        if values[n - 1, s] > values[n - 1, last]:
            last = s
    path[n - 1] = last
    for t in range(n - 1, 0, -1):
        s, chosen = path[t], 0
        for r in range(1, k):
            if values[t - 1, r] + transition[r, s] > values[t - 1, chosen] + transition[chosen, s]:
                chosen = r
        path[t - 1] = chosen
    return values[n - 1, last]


@kernel
def pick(weights, uniform):
    """Choose an index with probability ∝ weights by a uniform number."""
    total = 0.0
    for s in range(len(weights)):
        total += weights[s]
    level, s, reached = uniform * total, 0, weights[0]
    while s < len(weights) - 1 and reached <= level:
        s += 1
        reached += weights[s]
    return s


@kernel
def walk(start, transition, uniforms, path):
    """Draw a path of a chain by uniform numbers."""
    for t in range(len(path)):
        path[t] = pick(start if t == 0 else transition[path[t - 1]], uniforms[t])


@kernel
def draw_path(alpha, turned, uniforms, path):
    """Draw a path of a sequence given all its rows, from its filter: the last state first, then each given the next one."""
    n, k = alpha.shape
    weights = np.empty(k)
    for t in range(n - 1, -1, -1):
        for s in range(k):
            weights[s] = alpha[t, s] * (turned[path[t + 1], s] if t + 1 < n else 1.0)
        path[t] = pick(weights, uniforms[t])


@kernel
def log_sum(x):
    """Logarithm of the sum of exponentials."""
    top = -np.inf
    for s in range(len(x)):
        top = max(top, x[s])
    if top == -np.inf:
        return top
    total = 0.0
    for s in range(len(x)):
        total += np.exp(x[s] - top)
    return top + np.log(total)


@kernel
def log_forward(logs, start, transition, out):
    """Write log p(x₁…xₜ₋₁, sₜ) of a sequence, without scales: what checkers use, and nobody else; return its log-likelihood."""
    n, k = logs.shape
    terms = np.empty(k)
    out[0] = start
    for t in range(1, n):
        for s in range(k):
            for r in range(k):
                terms[r] = out[t - 1, r] + logs[t - 1, r] + transition[r, s]
            out[t, s] = log_sum(terms)
    for s in range(k):
        terms[s] = out[n - 1, s] + logs[n - 1, s]
    return log_sum(terms)


@kernel
def log_backward(logs, transition, out):
    """Write log p(xₜ₊₁…x_T | sₜ) of a sequence, without scales."""
    n, k = logs.shape
    terms = np.empty(k)
    out[n - 1] = 0.0
    for t in range(n - 2, -1, -1):
        for r in range(k):
            for s in range(k):
                terms[s] = transition[r, s] + logs[t + 1, s] + out[t + 1, s]
            out[t, r] = log_sum(terms)


@kernel
def log_slopes(logs, transition, before, after, value, slopes):
    """Add the derivatives of the log-likelihood of a sequence by its transitions; return how far pairs miss the states.

    `before` and `after` are what `log_forward` and `log_backward` wrote; `transition` has probabilities.
    """
    n, k = logs.shape
    worst = 0.0
    for t in range(1, n):
        for r in range(k):
            here = before[t - 1, r] + logs[t - 1, r] - value
            law = -np.exp(here + after[t - 1, r])
            for s in range(k):
                slope = np.exp(min(here + logs[t, s] + after[t, s], 700.0))  # no larger number has an exponential
                slopes[r, s] += slope
                law += slope * transition[r, s]
            worst = max(worst, abs(law))
    return worst


@kernel
def best_ahead(logs, transition, out):
    """Write the largest log-probability of what follows each state of a sequence: potentials that prove a path the best."""
    n, k = logs.shape
    out[n - 1] = 0.0
    for t in range(n - 2, -1, -1):
        for r in range(k):
            top = -np.inf
            for s in range(k):
                top = max(top, transition[r, s] + logs[t + 1, s] + out[t + 1, s])
            out[t, r] = top
