"""Sequences and graphs: Markov chains, hidden Markov models, state-space models, Bayes nets.

N counts what is seen of a sequence, symbol by symbol or row by row, as `bic` of these models does. Rows of a sequence are not
independent, so that the N of Bayes' criterion is a convention; `n` declares another.
"""

import numpy as np

from lemmata.markov.counting import encode
from lemmata.model_selection.likelihoods.account import HELD_BACK, Account, law, places_of
from lemmata.model_selection.likelihoods.densities import whole_number
from lemmata.state_space.em import free_entries
from lemmata.state_space.matrices import check_series

DEPENDENT = "rows of a sequence are not independent: their number as N is a convention"


@law("MarkovChain")
def chain(model, rows):
    """Count the chances of a context, which sum to one, and those of the first symbols."""
    rows.unweighted(model)
    rows.whole(model)
    contexts, symbols = model._model().rows.shape
    seen = int((encode(rows.X, model._model().states)[0].values >= 0).sum())
    counted = {"transitions": contexts * (symbols - 1), "first symbols": contexts - 1}
    note = (DEPENDENT, HELD_BACK) if model.alpha else (DEPENDENT,)
    return Account(float(model.log_likelihood(rows.X)), counted, float(max(seen, 1)), "symbols", note)


@law("CategoricalHMM", "GaussianHMM")
def hidden_chain(model, rows):
    """Tell probabilities of states and parameters of emissions; what is fixed, or was given as 0, does not count."""
    rows.unweighted(model)
    if not hasattr(model, "_n_parameters_of_law"):
        return foreign_chain(model, rows)
    n, mean = model._score(model._checked_sequences(rows.X, rows.lengths))
    law_of = model._n_parameters_of_law()
    counted = {"start and transitions": model._n_parameters() - law_of, "emissions": law_of}
    return Account(n * mean, counted, n, "rows", (DEPENDENT, HELD_BACK) if has_prior(model) else (DEPENDENT,))


def has_prior(model):
    """Tell whether a hidden Markov model was fitted with a prior that is not flat."""
    flat = {"startprob_prior": 1.0, "transmat_prior": 1.0, "emissionprob_prior": 1.0, "covars_weight": 0.0}
    return any(np.any(np.asarray(getattr(model, name, value)) != value) for name, value in flat.items())


@law("sequences")
def foreign_chain(model, rows):
    """Take the count of a hidden Markov model that has `aic`, as hmmlearn's do, from AIC = 2K − 2L."""
    rows.unweighted(model)
    value = float(model.score(rows.X, lengths=rows.lengths))
    count = whole_number(float(model.aic(rows.X, lengths=rows.lengths)) / 2 + value)
    return Account(value, {"parameters": count}, rows.total, "rows", (DEPENDENT,))


@law("HMMClassifier")
def classes_of_sequences(model, rows):
    """Add up the models of the classes; every sequence is under the model of its own class."""
    rows.unweighted(model)
    logs = model.joint_log_likelihood(rows.X, rows.lengths)
    if rows.y is None or len(rows.y) != len(logs):
        raise ValueError(f"HMMClassifier predicts a target: give y, one label for each of the {len(logs)} sequences.")
    y = np.asarray(rows.y)
    value = float(logs[np.arange(len(y)), places_of(model.classes_, y)].sum())
    counted = {
        f"model of {label}": inner._n_parameters() for label, inner in zip(model.classes_, model.estimators_, strict=True)
    }
    n = float(np.sum(rows.lengths) if rows.lengths is not None else sum(len(sequence) for sequence in rows.X))
    note = "the likelihood is that of sequences and labels together", DEPENDENT
    note += (HELD_BACK,) if any(has_prior(inner) for inner in model.estimators_) else ()
    return Account(value, counted, n, "rows", note)


@law("LinearGaussianModel")
def state_space(model, rows):
    """Count the free entries of the matrices, those of covariances once; a model that was only given has none."""
    rows.unweighted(model)
    rows.whole(model)
    value = float(np.sum(model.log_likelihood(rows.X)))
    counted = {}
    if hasattr(model, "transition_"):
        for name, mask in free_entries(model.fixed, model._given())._asdict().items():
            count = int(np.tril(mask).sum() if name.endswith("covariance") else mask.sum())
            counted |= {name: count} if count else {}
    n = len(check_series(rows.X, None, model._matrices()).rows)
    return Account(value, counted, float(n), "rows", (DEPENDENT,))


@law("BayesNet", "LogLinearModel")
def graph(model, rows):
    """Take the free chances of all tables, or the dimensions of the family of weights."""
    rows.whole(model)
    n, value = model._likelihood(rows.X, rows.weight)
    part = "weights" if hasattr(model, "l2") else "tables"
    held = getattr(model, "l2", 0) or getattr(model, "alpha", 0)
    note = (HELD_BACK,) if held else ()
    return Account(float(value), {part: model.n_parameters}, float(n), "rows", note)
