"""The rounds of AdaBoost on the class numbers that its members give to the rows, and the vote; see `adaboost`."""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from lemmata.core.kernel import kernel

CHANCE = 1e-10  # a member that beats guessing by less does so by rounding
EXPONENT = 700.0  # of nearly the largest number; a bound beyond it says as little
TIE = 1e-12  # share of all say by which two classes must differ; less is the rounding of sums


class Rounds(NamedTuple):
    """What each round found: the member's error and say, the bound, and the share of the rows that the vote gets wrong."""

    errors: np.ndarray
    says: np.ndarray
    bounds: np.ndarray
    train_errors: np.ndarray
    guessed: float | None  # error of a member that was no better than guessing, if that ended it


@kernel
def wrong_weight(multiplier, base, y, codes):
    """Add the weights of the rows that got another class than theirs."""
    total = 0.0
    for i in range(len(y)):
        total += base[i] * multiplier[i] if codes[i] != y[i] else 0.0
    return total


@kernel
def reweigh(multiplier, y, codes, right, wrong):
    """Multiply the weights of rows by one of two factors."""
    for i in range(len(y)):
        multiplier[i] *= wrong if codes[i] != y[i] else right


@kernel
def cast(votes, codes, say):
    """Add the say of a member to the classes it votes for."""
    for i in range(len(codes)):
        votes[i, codes[i]] += say


@kernel
def lost_weight(votes, y, base, tie):
    """Add the weights of the rows whose class does not win the vote; among equals the first wins."""
    total = 0.0
    if votes.shape[1] == 2:  # the same without a branch
        for i in range(len(y)):
            total += base[i] if (votes[i, 1] - votes[i, 0] > tie) != (y[i] == 1) else 0.0
        return total
    for i in range(len(y)):
        top = 0.0
        for k in range(votes.shape[1]):
            top = max(top, votes[i, k])
        winner = 0
        while votes[i, winner] < top - tie:
            winner += 1
        total += base[i] if winner != y[i] else 0.0
    return total


def boost(learner, n_estimators, learning_rate):
    """Run the rounds; the learner fits a member to weights base · multiplier and says which class it gives to each row."""
    y, base, n_classes = learner.y, learner.base, learner.n_classes
    total = base.sum()
    multiplier = np.full(len(y), 1.0 / total)
    votes = np.zeros((len(y), n_classes))
    found, say_of_all, log_bound, failures = [], 0.0, 0.0, 0
    while len(found) < n_estimators:
        codes = learner.fit(multiplier)
        error = wrong_weight(multiplier, base, y, codes)
        if 1 - 1 / n_classes - error <= CHANCE:
            learner.discard()
            failures += 1
            if failures < learner.tries:
                continue
            return Rounds(*np.array(found).reshape(-1, 4).T, error)
        failures = 0
        # ln((1 − ε)/ε) is infinite for a member that is never wrong: it gets more say than all others together.
        say = learning_rate * (np.log((1 - error) / error) + np.log(n_classes - 1)) if error > 0 else 1 + say_of_all
        say_of_all += say
        log_norm = np.logaddexp(np.log1p(-error), say + np.log(error)) if error > 0 else 0.0  # ln(1 − ε + ε exp(a))
        reweigh(multiplier, y, codes, np.exp(-log_norm), np.exp(say - log_norm))
        cast(votes, codes, say)
        log_bound += log_norm - say / 2
        lost = lost_weight(votes, y, base, TIE * say_of_all) / total
        found.append((error, say, np.exp(min(log_bound, EXPONENT)), lost))
        if error == 0:
            break
    return Rounds(*np.array(found).T, None)


def settled(votes, say):
    """Raise votes that differ from the winner's by rounding only to a tie, which the first class wins."""
    top = votes.max(axis=1, keepdims=True)
    return np.where(votes >= top - TIE * say, top, votes)


def decisions(votes, say):
    """Turn votes into scikit-learn's decision values: −2 … 2 for two classes, one value for each of more."""
    votes = settled(votes, say)
    n_classes = votes.shape[1]
    if n_classes == 2:
        return 2 * (votes[:, 1] - votes[:, 0]) / say
    return (votes * n_classes / (n_classes - 1) - say / (n_classes - 1)) / say


def probabilities(decision):
    """Turn decision values into probabilities, as scikit-learn does: a softmax of the coded vote over K − 1."""
    if decision.ndim == 1:
        return softmax(np.column_stack([-decision, decision]) / 2, axis=1)
    return softmax(decision / (decision.shape[1] - 1), axis=1)
