"""The certificate of AdaBoost: the weights of all rounds, replayed from what the members predict.

Only the data and the members are believed. Their predictions give the errors ε_t, these the says a_t and the next weights;
after each update (with ν = 1) the member is wrong on exactly 1 − 1/K of the weight, half of it for two classes. The votes give
the training error and the mean of exp(A/2 − V) after every round: the one is at most the other, and the other equals the
product that the theorem names. Stumps are further held to be the best of their round: every threshold of every column is tried,
in the order of the values, with floating-point sums; no bins, no bounds, nothing of the solver. Members of lemmata that were
fitted to the same weights, or to the same rows drawn again from the seed, are asked for their own certificates.
"""

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.config import n_threads
from lemmata.core.estimator import Estimator
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.ensemble.adaboost_rounds import EXPONENT, TIE
from lemmata.ensemble.weak_learners import Draws

ROUNDING = 1e-9  # of sums of weights, relative; many thousand roundings of float64
AT_ONCE = 64  # weightings tried in one pass over the rows: eight cache lines of each


@kernel
def best_gain(order, n_seen, x, y, weights, shares):
    """Try every threshold of a column under several weightings at once; return the largest gain under each.

    `order` has the rows by value, those without one last, which go right and then left; weights (n, weightings), shares (K,
    weightings).
    """
    n_classes, many = shares.shape
    best, total, squares, left = np.zeros(many), np.zeros(many), np.zeros(many), np.zeros(shares.shape)
    for side in range(2 if n_seen < len(order) else 1):
        left[:], total[:] = 0.0, 0.0
        for i in range(n_seen if side else len(order), len(order)):
            for t in range(many):
                left[y[order[i]], t] += weights[order[i], t]
                total[t] += weights[order[i], t]
        for i in range(n_seen if side == 0 and n_seen < len(order) else n_seen - 1):
            row = order[i]
            own = left[y[row]]
            for t in range(many):
                own[t] += weights[row, t]
                total[t] += weights[row, t]
            if i < n_seen - 1 and x[row] == x[order[i + 1]]:
                continue
            squares[:] = 0.0
            for k in range(n_classes):
                for t in range(many):
                    excess = left[k, t] - shares[k, t] * total[t]
                    squares[t] += excess * excess
            for t in range(many):
                split = total[t] * (1 - total[t])
                gain = squares[t] / split if split > ROUNDING else 0.0  # else nothing but rounding is on one side
                best[t] = max(best[t], gain)
    return best


def best_gains(X, y, weights, n_classes):
    """Return the largest gain of any stump under each of several weightings of the rows, (weightings, n)."""
    orders = np.argsort(X, axis=0)  # NaN comes last
    seen = X.shape[0] - np.isnan(X).sum(axis=0)
    found = np.zeros((X.shape[1], len(weights)))
    for first in range(0, len(weights), AT_ONCE):
        some = np.ascontiguousarray(np.transpose(weights[first : first + AT_ONCE]))
        shares = np.array([some[y == k].sum(axis=0) for k in range(n_classes)])

        def work(j, some=some, shares=shares, first=first):
            x, order = np.ascontiguousarray(X[:, j]), np.ascontiguousarray(orders[:, j])
            found[j, first : first + AT_ONCE] = best_gain(order, seen[j], x, y, some, shares)

        run(work, range(X.shape[1]), min(n_threads(), X.shape[1]))
    return found.max(axis=0)


def stump_residuals(model, X, y, weights):
    """Compare each stump with the best one and with its own rows: gain missed, gain misstated, contents, midpoint."""
    stumps, n_classes = model._members, model.n_classes_
    best = best_gains(X, y, weights, n_classes)
    missed = stated = content = middle = 0.0
    for t, w in enumerate(weights):
        stump = stumps.one(t)
        whole = np.bincount(y, w, n_classes)
        x = X[:, max(stump.feature, 0)].astype(float)
        left = (x <= stump.threshold) | (np.isnan(x) & bool(stump.missing_left)) | (stump.feature < 0)
        parts = np.array([np.bincount(y[side], w[side], n_classes) for side in (left, ~left)])
        total = parts.sum(axis=1)
        gain = 0.0
        if stump.feature < 0:
            value = np.array([whole] * 3)
        elif total.min() <= 0:
            return np.inf, np.inf, np.inf, np.inf
        else:
            value = np.vstack([whole, parts / total[:, None]])
            gain = ((parts[0] - total[0] * whole) ** 2).sum() / total.prod()
            middle = max(middle, off_center(x[w > 0], stump.threshold))
            if not np.isnan(x).any() and abs(total[0] - total[1]) > ROUNDING:  # then NaN goes with the heavier side
                content = max(content, float(bool(stump.missing_left) != (total[0] > total[1])))
        missed = max(missed, best[t] - gain)
        stated = max(stated, abs(stump.gain - gain) / max(gain, ROUNDING))
        rows = [len(y), left.sum(), (~left).sum()]
        for stored, found in ((stump.value, value), (stump.weight, [1.0, *total]), (stump.rows, rows)):
            content = max(content, float(np.abs(stored - np.asarray(found)).max()))
    return missed, stated, content, middle


def off_center(x, threshold):
    """Measure how far a threshold is from the middle of its neighbors, as a share of their distance."""
    below, above = x[x <= threshold], x[x > threshold]
    if not len(below):
        return np.inf
    if not len(above):
        return 0.0 if threshold == np.inf else 1.0
    low, high = below.max(), above.min()
    return max(abs(threshold - (low / 2 + high / 2)) - 2 * np.spacing(abs(threshold)), 0.0) / (high - low)


class Replay:
    """The rounds again, from the members' predictions `codes` (members, n): weights, errors, says, losses, votes."""

    def __init__(self, codes, y, base, n_classes, learning_rate):
        weight = base / base.sum()
        start, votes, say, right = weight.copy(), np.zeros((len(y), n_classes)), 0.0, np.zeros(len(y))
        self.weights, self.errors, self.says, self.after = [], [], [], []
        self.losses, self.coded, self.train_errors = [], [], []
        for given in codes:
            wrong = given != y
            error = float(weight @ wrong)
            perfect = not wrong[weight > 0].any()
            with np.errstate(divide="ignore"):
                a = 1 + say if perfect else learning_rate * (np.log((1 - error) / error) + np.log(n_classes - 1))
            self.weights.append(weight)
            weight = weight * np.where(wrong, np.exp(min(a, EXPONENT)), 1.0)
            weight = weight / weight.sum()
            say += a
            votes[np.arange(len(y)), given] += a
            right += np.where(wrong, 0.0, a)
            top = votes.max(axis=1, keepdims=True)
            winner = (votes >= top - TIE * say).argmax(axis=1)
            self.errors.append(error)
            self.says.append(a)
            self.after.append(1 - 1 / n_classes if perfect else float(weight @ wrong))
            self.losses.append(start @ np.exp(np.minimum(say / 2 - right, EXPONENT)))
            self.coded.append(start @ np.exp(np.minimum(say / n_classes - right, EXPONENT)))
            self.train_errors.append(start @ (winner != y))

    def factors(self, n_classes):
        """Return what the theorem says each round multiplies the two losses by, with ν = 1."""
        e, k = np.array(self.errors), n_classes
        return k * np.sqrt(e * (1 - e) / (k - 1)), k * (1 - e) ** (1 / k) * (e / (k - 1)) ** (1 - 1 / k)


def certificate(model, X, y, base):
    """Certify a fitted vote on its rows, their class numbers and weights."""
    base = np.ones(len(y)) if base is None else base
    k, says = model.n_classes_, np.asarray(model.estimator_weights_)
    codes = list(model._codes(X))
    if k != len(model.classes_) or len(says) != len(codes):
        return Certificate(Check("members", np.inf, 0.0, "proof", "every member has a say"), subject=repr(model))
    replay = Replay(codes, y, base, k, model.learning_rate)
    losses, train_errors = np.array(replay.losses), np.array(replay.train_errors)
    checks = [
        same(model.estimator_errors_, replay.errors, "errors", "the weighted error of each member, weights replayed"),
        same(says, replay.says, "says", "each member has the say that its error gives it"),
        same(model.train_errors_, train_errors, "training errors", "share of rows the vote gets wrong", floor=ROUNDING),
        same(model.bound_, losses, "bound", "the bound is the mean exponential loss of the vote"),
        Check("error bound", float((train_errors - losses).max()), 1e-12, "proof", "training error ≤ bound after every round"),
        *plain_checks(model, replay, losses, k),
        *member_checks(model, X, y, base, replay),
    ]
    return Certificate(*checks, subject=repr(model))


def plain_checks(model, replay, losses, k):
    """What holds for the learning rate 1: the members' errors after the update, and the losses as products."""
    if model.learning_rate != 1:
        return
    share = 1 - 1 / k
    off = float(np.abs(np.array(replay.after) - share).max())
    yield Check("weights", off, ROUNDING, "proof", f"reweighted, each member is wrong on {share:.3g} of the weight")
    plain = np.array(replay.errors) > 0
    mean, coded = (np.cumprod(np.where(plain, factor, 1.0)) for factor in replay.factors(k))
    name = "∏ 2√(ε(1−ε))" if k == 2 else "∏ K√(ε(1−ε)/(K−1))"
    yield same(losses[plain], mean[plain], "product", f"the mean exponential loss is {name}")
    if k == 2:
        edges = np.exp(-2 * np.cumsum((0.5 - np.array(replay.errors)) ** 2))
        yield Check("edges", float((losses - edges).max()), 1e-12, "proof", "the bound is at most exp(−2 Σ (½ − ε)²)")
    else:
        claim = "the coded vote's loss is its product, below one"
        yield same(np.array(replay.coded)[plain], coded[plain], "coded loss", claim)


def member_checks(model, X, y, base, replay):
    """What can be said of the members themselves: stumps are the best ones; others have certificates of their own."""
    weights, drawn = replay.weights, None
    if hasattr(model, "draw_seed_"):
        draws = Draws(model.draw_seed_, base)
        drawn = [draws.counts(int(number), w) for number, w in zip(model.draw_numbers_, weights, strict=True)]
    if model._has_stumps():
        used = weights if drawn is None else [counts / counts.sum() for counts in drawn]
        missed, stated, content, middle = stump_residuals(model, X, y, used)
        yield Check("stumps", missed, ROUNDING, "proof", "no other threshold or column gains more in any round")
        yield Check("gains", stated, SAME_LIMIT, "proof", "the gain of every stump")
        yield Check("contents", content, SAME_LIMIT, "proof", "class shares, weights and rows on either side of every stump")
        yield Check("midpoints", middle, 1e-4, "proof", "thresholds lie halfway between neighboring values")
        return
    members = model.estimators_
    if not all(isinstance(member, Estimator) for member in members):
        return
    labels, found = model.classes_[y], []
    for t, member in enumerate(members):
        if drawn is None:
            found.append(member.certify(X, labels, sample_weight=weights[t] * base.sum()))
        else:
            rows = np.repeat(np.arange(len(y)), drawn[t])
            found.append(member.certify(X[rows], labels[rows]))
    refused = sum(not each.holds for each in found)
    kinds = {each.kind for each in found}
    kind = "evidence" if "evidence" in kinds else "local" if "local" in kinds else "proof"
    yield Check("members", float(refused), 0.0, kind, "every member holds its own certificate")
