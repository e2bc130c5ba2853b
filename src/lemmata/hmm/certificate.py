"""The checks of a hidden Markov model: everything again in logarithms, without scales, and a proof that the path is the best.

The recursions are run from both ends with sums of exponentials in place of scales: the log-likelihood must come out the same
from the left, from the right and as the fit reported it; the probabilities of states are those that the model gives, and those
of pairs of states add up to them. A path is proved the best by potentials uₜ(s), the largest log-probability of what can follow
state s: whatever path is taken, its log-probability is at most maxₛ log π(s) + ℓ₁(s) + u₁(s), because no step ever gains on the
potentials; and Viterbi's path attains this. (Chains are linear programs, and this is their dual.)

By Fisher's identity the likelihood, with its priors, is stationary exactly where an EM step leaves the parameters. Where a
probability is 0 a step leaves it there whatever the rows say, so there the condition is another: to raise it must not pay. It
is asked wherever the 0 was not given as structure.
"""

import numpy as np

from lemmata.core.blocks import Largest
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, equi, same, simplex
from lemmata.hmm import recursions
from lemmata.hmm.baum_welch import shares
from lemmata.mixture.discrete import BORDER, EXCESS

STILL = 1e-10  # probabilities that move by no more stand still


def likelihood_block(X, lengths, checker, start, transition, parameters):
    """Log-likelihood of the sequences of a block."""
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    logs, total, at = checker.log_densities(X, parameters), 0.0, 0
    for m in lengths:
        total += recursions.log_forward(logs[at : at + m], log_start, log_transition, np.empty((m, len(start))))
        at += m
    return total


def map_block(X, lengths, checker, start, transition, parameters):
    """Log-likelihoods from both ends, what an M-step needs, and the largest miss between pairs and states."""
    k, n = len(start), len(X)
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    logs = checker.log_densities(X, parameters)
    before, after, values = np.empty((n, k)), np.empty((n, k)), np.empty(n)
    first, slopes, miss, ends, at = np.zeros((2, k)), np.zeros((k, k)), 0.0, 0.0, 0
    for m in lengths:
        rows = slice(at, at + m)
        value = recursions.log_forward(logs[rows], log_start, log_transition, before[rows])
        recursions.log_backward(logs[rows], log_transition, after[rows])
        values[rows] = value
        from_right = recursions.log_sum(log_start + logs[at] + after[at])
        ends = max(ends, abs(value - from_right) / max(abs(value), 1.0))
        miss = max(miss, recursions.log_slopes(logs[rows], transition, before[rows], after[rows], value, slopes))
        first[0] += np.exp(log_start + logs[at] + after[at] - value)
        first[1] += np.exp(np.minimum(logs[at] + after[at] - value, 700.0))  # no larger number has an exponential
        at += m
    ahead = before + after - values[:, None]
    states = np.exp(logs + ahead)
    total = float(values[np.concatenate([[0], np.cumsum(lengths)[:-1]])].sum())
    return total, first, slopes, checker.statistics(X, states, ahead, parameters), Largest(miss), Largest(ends)


def disagreement_block(X, lengths, checker, model_states, start, transition, parameters):
    """Largest difference of the model's probabilities of states from those by logarithms, and gap of its paths, as a share."""
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    logs = checker.log_densities(X, parameters)
    states, paths = model_states(X, lengths)
    worst, gap, at = 0.0, 0.0, 0
    before, after = np.empty(logs.shape), np.empty(logs.shape)
    for m in lengths:
        rows = slice(at, at + m)
        value = recursions.log_forward(logs[rows], log_start, log_transition, before[rows])
        recursions.log_backward(logs[rows], log_transition, after[rows])
        worst = max(worst, float(np.abs(np.exp(logs[rows] + before[rows] + after[rows] - value) - states[rows]).max()))
        recursions.best_ahead(logs[rows], log_transition, after[rows])
        path, best = paths[rows], float((log_start + logs[at] + after[at]).max())
        taken = log_start[path[0]] + logs[rows][np.arange(m), path].sum() + log_transition[path[:-1], path[1:]].sum()
        gap = max(gap, (best - taken) / max(abs(best), 1.0))
        at += m
    return Largest(worst), Largest(gap)


class Map:
    """The EM map on sequences, by logarithms."""

    def __init__(self, model, sequences, checker):
        self.sequences, self.checker = sequences, checker
        k = model.n_components
        self.start_prior, self.transition_prior = model._prior("startprob_prior", (k,)), model._prior("transmat_prior", (k, k))

    def look(self, start, transition, parameters):
        """Give what `map_block` finds over all blocks."""
        return self.sequences.reduce(map_block, self.checker, start, transition, parameters)

    def __call__(self, start, transition, parameters):
        """Return start, transitions and parameters of the law after a step."""
        _, first, slopes, statistics, *_ = self.look(start, transition, parameters)
        counted = np.where(start > 0, np.maximum(first[0] + (self.start_prior - 1.0), 0.0), 0.0)
        steps = np.where(transition > 0, np.maximum(slopes * transition + (self.transition_prior - 1.0), 0.0), 0.0)
        return shares(counted, start), shares(steps, transition), self.checker.step(statistics, parameters)


def certificate(model, sequences):
    """Check a fitted model against sequences."""
    subject, identities = repr(model), model._identities(sequences)
    if not all(check.holds for check in identities):
        return Certificate(*identities, subject=subject)
    start, transition, parameters = *model._chain(), model._stored()
    checker = model._checker()
    claim = "start and transitions are probabilities"
    sound = Check("parameters", _fault(start, transition), SAME_LIMIT, "proof", claim)
    emissions = checker.sound(parameters)
    if not (sound.holds and emissions.holds):
        return Certificate(sound, emissions, subject=subject)
    step, claim = Map(model, sequences, checker), "the mean log-likelihood of a row"
    value = sequences.reduce(likelihood_block, checker, start, transition, parameters)
    if not value > -np.inf:
        return Certificate(sound, Check("log-likelihood", np.inf, SAME_LIMIT, "proof", claim), subject=subject)
    value, first, slopes, statistics, miss, ends = step.look(start, transition, parameters)
    found = sequences.reduce(disagreement_block, checker, model._inference(), start, transition, parameters)
    claims = {
        "both ends": ("the likelihood is the same from the left and from the right", ends.value),
        "states": ("the probabilities of the states are those by logarithms", found[0].value),
        "pairs": ("pairs of states add up to states", miss.value),
        "path": ("no path is more probable than the one that is decoded: potentials prove it", found[1].value),
    }
    checks = [
        sound,
        *identities,
        *([] if emissions.name == "parameters" else [emissions]),
        same(model.lower_bound_, value / sequences.n_rows, "log-likelihood", claim, floor=1e-3),
        *(Check(name, worst, SAME_LIMIT, "proof", claim) for name, (claim, worst) in claims.items()),
    ]
    excess = checker.excess(statistics, parameters)
    for name, stored, prior, slope, moved in (
        ("startprob", start, step.start_prior, first[1], lambda a: step(a, transition, parameters)[0]),
        ("transmat", transition, step.transition_prior, slopes, lambda a: step(start, a, parameters)[1]),
    ):
        given = model._probabilities(f"{name}_init", stored.shape)
        if name in model.fixed:
            # What was fixed as it was drawn cannot be told from anything else.
            checks += [] if given is None else [same(stored, given, name, "the probabilities are those given")]
        elif len(start) > 1:
            claim = "an EM step leaves the probabilities where they are"
            checks.append(equi(_still(moved), stored, name, claim, move=_within))
            excess = max(excess, _excess(stored, slope, prior, np.ones(stored.shape, bool) if given is None else given > 0))
    occupancies = statistics[0] / statistics[0].sum() if statistics[0].ndim == 1 else None
    checks += checker.stationary(lambda p: step(start, transition, p)[2], occupancies, parameters)
    checks.append(Check("border", excess, EXCESS, "local", "to raise a 0 that was not given does not pay"))
    return Certificate(*checks, subject=subject)


def _still(moved):
    """Give the residual of a step: what moves by no more than rounding stands still."""

    def residual(a):
        found = a - moved(a)
        return np.where(np.abs(found) > STILL, found, 0.0)

    return residual


def _within(a, rng):
    """Move probabilities by 1 %, and leave alone what is 0."""
    moved = np.where(a > 0, simplex(a, rng), 0.0)
    return moved / moved.sum(axis=-1, keepdims=True)


def _excess(probabilities, slopes, prior, allowed):
    """Say by how much, at most, a derivative on the border exceeds its multiplier, as a share."""
    prior = np.broadcast_to(prior, probabilities.shape)
    counts = slopes * probabilities + np.where(probabilities > 0, prior - 1.0, 0.0)
    totals = np.broadcast_to(counts.sum(axis=-1, keepdims=True), probabilities.shape)
    low = (probabilities < BORDER) & (totals > 0) & allowed & (prior <= 1.0)
    return float((slopes[low] / totals[low] - 1.0).max(initial=0.0))


def _fault(start, transition):
    """Say how far start and transitions are from probabilities; infinite where they are of no use."""
    both = np.vstack([start, transition])
    if not (np.isfinite(both).all() and (both >= 0).all()):
        return np.inf
    return float(np.abs(both.sum(axis=1) - 1.0).max())
