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
counts. The same can be done from the other end, with the largest log-probability of what is to come.
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
def backward(densities, transition, beta):
    """Write what the rows to come say of each state of a sequence, up to a factor in each row."""
    n, k = densities.shape
    w = np.empty(k)
    beta[n - 1] = 1.0
    for t in range(n - 1, 0, -1):
        ahead, b, now, total = beta[t], densities[t], beta[t - 1], 0.0
        for s in range(k):
            w[s] = b[s] * ahead[s]
        for r in range(k):
            row, x = transition[r], 0.0
            for s in range(k):
                x += row[s] * w[s]
            now[r] = x
            total += x
        share = 1.0 / total if total > 0.0 else 0.0
        for r in range(k):
            now[r] *= share


@kernel
def join(densities, transition, alpha, beta, first, last, steps):
    """Turn the filter of the rows from first to last into P(state|all rows), in place, by what `backward` wrote.

    Adds the derivatives by the transitions out of these rows to steps.
    """
    n, k = densities.shape
    w = np.empty(k)
    for t in range(first, last):
        now, back, total = alpha[t], beta[t], 0.0
        if t + 1 < n:
            b, ahead, whole = densities[t + 1], beta[t + 1], 0.0
            for s in range(k):
                w[s] = b[s] * ahead[s]
            for r in range(k):
                row, x = transition[r], 0.0
                for s in range(k):
                    x += row[s] * w[s]
                whole += now[r] * x
            share = 1.0 / whole if whole > 0.0 else 0.0
            for r in range(k):
                x, row = now[r] * share, steps[r]
                for s in range(k):
                    row[s] += x * w[s]
        for r in range(k):
            now[r] *= back[r]
            total += now[r]
        share = 1.0 / total if total > 0.0 else 0.0
        for r in range(k):
            now[r] *= share


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
def best_before(before, transition, best):
    """Write the largest of before(r) + transition(r, s) over r, for every s; four r at a time, to touch each s less often."""
    k = len(before)
    best[:] = -np.inf
    for r in range(0, k - k % 4, 4):
        x0, x1, x2, x3 = before[r], before[r + 1], before[r + 2], before[r + 3]
        p0, p1, p2, p3 = transition[r], transition[r + 1], transition[r + 2], transition[r + 3]
        for s in range(k):
            best[s] = max(best[s], max(max(x0 + p0[s], x1 + p1[s]), max(x2 + p2[s], x3 + p3[s])))
    for r in range(k - k % 4, k):
        x, p = before[r], transition[r]
        for s in range(k):
            best[s] = max(best[s], x + p[s])


@kernel
def best_values(logs, before, transition, values):
    """Write Viterbi's values of some rows, given those of the row before them already carried over by one step."""
    n, k = logs.shape
    for s in range(k):
        values[0, s] = before[s] + logs[0, s]
    for t in range(1, n):
        best_before(values[t - 1], transition, values[t])
        for s in range(k):
            values[t, s] += logs[t, s]


@kernel
def first_largest(x):
    """Index of the largest number; of several that are equal the first."""
    chosen = 0
    for s in range(1, len(x)):
        if x[s] > x[chosen]:
            chosen = s
    return chosen


@kernel
def trace_back(values, turned, path):
    """Write the path to the state of the last row, which is given, from the values of all rows and the transposed matrix."""
    for t in range(len(path) - 1, 0, -1):
        step, before, chosen = turned[path[t]], values[t - 1], 0
        for r in range(1, len(step)):
            if before[r] + step[r] > before[chosen] + step[chosen]:
                chosen = r
        path[t - 1] = chosen


@kernel
def viterbi(logs, start, transition, values, path):
    """Write the most probable path of a sequence; return its log joint probability. `start` and `transition` are logarithms."""
    n = len(logs)
    best_values(logs, start, transition, values)
    path[n - 1] = first_largest(values[n - 1])
    trace_back(values, transition.T.copy(), path)
    return values[n - 1, path[n - 1]]


@kernel
def best_futures(logs, turned, after, values):
    """Write the largest log-probability of each of some rows and what follows, given that of what follows the last one."""
    n, k = logs.shape
    for s in range(k):
        values[n - 1, s] = after[s] + logs[n - 1, s]
    for t in range(n - 2, -1, -1):
        best_before(values[t + 1], turned, values[t])
        for s in range(k):
            values[t, s] += logs[t, s]


@kernel
def trace_ahead(values, transition, state, path):
    """Write the best path of some rows after a state, from their futures."""
    for t in range(len(path)):
        step, ahead, chosen = transition[state], values[t], 0
        for s in range(1, len(step)):
            if step[s] + ahead[s] > step[chosen] + ahead[chosen]:
                chosen = s
        path[t] = state = chosen


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
