"""`Decide`: the Bayes decision on top of any classifier that gives probabilities.

The classifier says how probable each class is, the costs say what follows. `Decide` takes the action of least conditional
risk (`lemmata.decision.risk`), refuses where even that costs more than a refusal, and corrects the probabilities where the
classes occur with other shares than in training (`lemmata.decision.priors`). All three are one matrix product: a refusal is a
row of equal costs, and p′(k|x) ∝ p(k|x) rₖ decides as p(k|x) does under costs whose columns are multiplied by rₖ. So a
decision costs one pass over the probabilities, and the classifier never has to be fitted again when costs or priors change.
Certificate: that of the classifier, if it is one of ours; the class shares are those of the data; and on every row no action
has a lower expected cost than the one taken.
"""

from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.data import is_stored
from lemmata.core.estimator import Classifier, Estimator
from lemmata.decision.priors import checked_priors, corrected
from lemmata.decision.risk import best_actions, checked_costs, decision_cost, in_order, risks, zero_one
from lemmata.linear_model.logistic import LogisticRegression


def share_block(X, y, weight, n_classes):
    """Total weight of each class in a block."""
    return np.bincount(y, weights=weight, minlength=n_classes).astype(float)


def fitted_model(estimator):
    """Look inside a frozen estimator."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


class Decide(Classifier):
    """Decide by the expected costs of actions, on top of any classifier with `predict_proba`.

    `fit` fits a copy of the classifier. One that is fitted already is used as it is by `Decide.of(fitted, costs)`, or inside
    `sklearn.frozen.FrozenEstimator`. When costs or priors change, `Decide.of(model.estimator_, costs)` needs no new fit.

    Parameters
    ----------
    estimator : Classifier, ours or any with scikit-learn's interface; default `LogisticRegression()`.
    costs : (actions, classes), the cost of each action in each class, classes in sorted order; default zero-one. A frame whose
        columns (and rows) are named for the classes (and actions) may have any order. Or a function of the rows X that returns
        (rows, actions, classes), a matrix for each row.
    reject_cost : Cost of refusing to decide, or a function of the rows X that returns one for each; default: never refuse.
    priors : Class shares where the model is used, if they differ from those it was trained on.
    actions : Labels of the actions; default the classes, if there are as many actions.
    reject_label : What `predict` gives for a refused row; default -1 where actions are numbers, else "rejected".
    training_priors : Class shares it was trained on, if not those of y in `fit` (for one, after resampling).

    Attributes
    ----------
    estimator_ : The fitted classifier.
    classes_ : (n_classes,)
    actions_ : (n_actions,) labels of the actions, without the refusal.
    costs_ : (n_actions, n_classes), or None if costs are a function.
    training_priors_ : (n_classes,) weighted shares of the classes in y, or as given.
    priors_ : (n_classes,) shares that the probabilities are corrected to.

    Examples
    --------
    To leave the umbrella at home (action 0) when it rains (class 1) costs 5, to carry it (action 1) when it is dry costs 1:

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = Decide(costs=[[0, 5], [1, 0]]).fit(X, y)
    >>> model.predict_proba([[1.5]])
    array([[0.683, 0.317]])
    >>> model.predict([[1.5]]), model.risk([[1.5]])
    (array([1]), array([[1.586, 0.683]]))
    >>> model.certify(X, y).holds
    True
    >>> Decide(reject_cost=0.2).fit(X, y).predict([[0.0], [2.5], [5.0]])
    array([ 0, -1,  1])
    """

    def __init__(
        self,
        estimator=None,
        costs=None,
        reject_cost=None,
        priors=None,
        *,
        actions=None,
        reject_label=None,
        training_priors=None,
    ):
        self.estimator = estimator
        self.costs = costs
        self.reject_cost = reject_cost
        self.priors = priors
        self.actions = actions
        self.reject_label = reject_label
        self.training_priors = training_priors

    @classmethod
    def of(cls, fitted, costs=None, **parameters):
        """Decide with a classifier that is fitted already; `priors` then need `training_priors` beside them.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> fitted = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"])
        >>> Decide.of(fitted, costs=[[0, 9], [1, 0]]).predict([[2.2], [2.4]])
        array(['no', 'yes'], dtype='<U3')
        """
        model = cls(FrozenEstimator(fitted), costs, **parameters)
        model._require_probabilities(fitted)
        if not hasattr(fitted, "classes_"):
            raise ValueError(f"Decide.of takes a fitted classifier, and {type(fitted).__name__} has no classes_: fit it first.")
        if model.priors is not None and model.training_priors is None:
            raise ValueError("To correct for priors, Decide.of needs training_priors too: the class shares of the training.")
        model.estimator_ = model.estimator
        model._adopt(None)
        return model

    def fit(self, X, y=None, sample_weight=None, **fit_params):
        """Fit a copy of the classifier, and take the class shares of y.

        X and y may be whatever the classifier takes; a weight means repetition. `fit_params` go to the classifier's `fit`.
        """
        model = self._estimator()
        self._require_probabilities(model)
        self._check_parameters(_visible_classes(X, y, sample_weight))
        self.estimator_ = clone(model).fit(X, y, **self._routed(model, sample_weight, fit_params))
        self._adopt((X, y, sample_weight))
        return self

    def _estimator(self):
        """Give the classifier to fit."""
        if self.estimator is not None:
            return self.estimator
        model = LogisticRegression()
        return model.set_fit_request(sample_weight=True) if _routing_enabled() else model

    @staticmethod
    def _require_probabilities(model):
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"Decide needs probabilities, and {type(model).__name__} has no predict_proba; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV."
            )

    def _routed(self, model, sample_weight, fit_params):
        """Give what the classifier's `fit` is called with beyond X and y."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            return process_routing(self, "fit", **given, **fit_params).estimator.fit
        if given and not isinstance(model, FrozenEstimator) and not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"{type(model).__name__} takes no sample_weight by itself; turn on scikit-learn's metadata routing, or fit it "
                "and use Decide.of."
            )
        return given | fit_params

    def get_metadata_routing(self):
        """Say which metadata go where: sample_weight and others to the classifier's `fit`, costs to our own methods."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._estimator(), method_mapping=mapping)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self._estimator())
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
        return tags

    def _check_parameters(self, classes):
        """Refuse wrong parameters as early as the classes (None: not known yet) allow."""
        reject = self.reject_cost
        if reject is not None and not callable(reject) and not (isinstance(reject, Real) and 0 <= reject < np.inf):
            raise ValueError(f"reject_cost must be a number of at least 0, or a function of the rows; got {reject!r}.")
        if self.actions is not None and len(set(self.actions)) < len(self.actions):
            raise ValueError(f"actions must have different labels; got {list(self.actions)}.")
        if classes is None:
            return
        n_classes, actions = len(classes), classes if self.actions is None else np.asarray(self.actions)
        self._labels(actions)
        for name in ("priors", "training_priors"):
            if getattr(self, name) is not None:
                checked_priors(getattr(self, name), n_classes, name)
        if self.costs is not None and not callable(self.costs):
            n_actions = None if self.actions is None else len(self.actions)
            shape = checked_costs(self.costs, n_classes, n_actions).shape
            if len(shape) == 3:
                raise ValueError("costs of each row depend on the rows: give a function of X, or pass costs= to predict.")
            if self.actions is None and shape[0] != n_classes:
                raise ValueError(f"costs have {shape[0]} actions for {n_classes} classes: name them with actions=.")
            in_order(self.costs, actions, classes)
        elif self.costs is None and self.actions is not None and len(self.actions) != n_classes:
            raise ValueError("Without costs the actions are the classes: give costs, or leave out actions.")

    def _adopt(self, data):
        """Take over what the fitted classifier knows, and the class shares of the data, if there are any."""
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)
        self._check_parameters(self.classes_)
        self.actions_, self.costs_ = self._expected_actions(), self._expected_costs()
        self.training_priors_ = self._expected_training_priors(data)
        self.priors_ = self._expected_priors(self.training_priors_)

    def _expected_actions(self):
        return self.classes_.copy() if self.actions is None else np.asarray(self.actions)

    def _expected_costs(self):
        if callable(self.costs):
            return None
        if self.costs is None:
            return zero_one(len(self.classes_))
        return np.array(in_order(self.costs, self._expected_actions(), self.classes_), dtype=float)

    def _expected_training_priors(self, data):
        if self.training_priors is not None:
            return checked_priors(self.training_priors, len(self.classes_), "training_priors")
        return None if data is None else self._shares(*data)

    def _expected_priors(self, training_priors):
        if self.priors is None:
            return None if training_priors is None else training_priors.copy()
        if not (training_priors > 0).all():
            absent = self.classes_[training_priors == 0][0]
            raise ValueError(f"The class {absent!s} has no weight in y, so that its prior cannot be corrected.")
        return checked_priors(self.priors, len(self.classes_))

    def _shares(self, X, y, sample_weight):
        """Return the weighted shares of the classes."""
        k = len(self.classes_)
        if isinstance(fitted_model(self.estimator_), Estimator):
            totals = self._labeled(X, y, sample_weight, reset=False).reduce(share_block, k)
        else:
            labels = column_or_1d(y)
            weight = (
                None
                if sample_weight is None
                else _check_sample_weight(sample_weight, labels[:, None], ensure_non_negative=True)
            )
            self._known(np.unique(labels if weight is None else labels[weight > 0]))
            numbers = np.minimum(np.searchsorted(self.classes_, labels), k - 1)
            totals = share_block(None, numbers, weight, k)
        return totals / totals.sum()

    def predict_proba(self, X):
        """Give the probability of each class, corrected to `priors`."""
        posterior = self._posterior(X)
        ratio = self._ratio()
        return posterior if ratio is None else corrected(posterior, ratio)

    def predict(self, X, costs=None):
        """Give each row the action of least expected cost; the first of equals.

        Parameters
        ----------
        X : Rows.
        costs : (rows, actions, classes) or (actions, classes), in place of those of the constructor.
        """
        posterior = self._posterior(X)
        labels = self._labels(self.actions_)
        return best_actions(posterior, self._weighted_costs(X, costs, len(posterior)), labels)

    def rejected(self, X, costs=None):
        """Tell which rows are refused, for whatever `reject_label` is."""
        posterior = self._posterior(X)
        return best_actions(posterior, self._weighted_costs(X, costs, len(posterior))) == len(self.actions_)

    def risk(self, X, costs=None):
        """Give the expected cost of each action, (rows, actions); with a `reject_cost`, that of refusing is the last column."""
        posterior = self.predict_proba(X)
        return risks(posterior, self._all_costs(X, costs, len(posterior)))

    def cost(self, X, y, sample_weight=None, costs=None):
        """Return the mean cost that the decisions have in truth, for rows whose classes are known."""
        taken = self.predict(X, costs)
        reject = self.reject_cost
        return decision_cost(
            y,
            taken,
            self._table(X, costs, len(taken)),
            classes=self.classes_,
            actions=self.actions_,
            reject_cost=reject(X) if callable(reject) else reject,
            reject_label=None if reject is None else self._labels(self.actions_)[-1],
            sample_weight=sample_weight,
        )

    def score(self, X, y, sample_weight=None, costs=None):
        """Return the accuracy under zero-one costs (a refusal counts as 1 − reject_cost), and minus the mean cost otherwise.

        More is better, so that a search over parameters finds those of least cost.
        """
        accuracy = self.costs is None and costs is None
        return float(accuracy) - self.cost(X, y, sample_weight, costs)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no action has a lower expected cost than the one taken, on any row; and what the classifier proves.

        The classifier is asked if it is one of ours and `fit` has fitted it: X and y are then its training data.
        """
        posterior = self._posterior(X)
        inner, checks = self.estimator_, []
        weighed = {} if sample_weight is None else {"sample_weight": sample_weight}  # which some have no use for
        if isinstance(inner, Estimator):
            checks += [replace(check, name=f"model {check.name}") for check in inner.certify(X, y, **weighed)]
        mismatch = float(not np.array_equal(self.classes_, inner.classes_))
        checks.append(Check("classes", mismatch, 0.0, "proof", "the classes are those of the classifier"))
        mismatch = float(not np.array_equal(self.actions_, self._expected_actions()))
        checks.append(Check("actions", mismatch, 0.0, "proof", "the actions are those asked for"))
        if self.costs_ is not None:
            checks.append(same(self.costs_, self._expected_costs(), "costs", "the costs are those asked for"))
        expected = self._expected_training_priors((X, y, sample_weight) if self.training_priors_ is not None else None)
        if expected is not None:
            claim = "the shares of the classes are those of the data, or as given"
            checks.append(same(self.training_priors_, expected, "training priors", claim))
            claim = "probabilities are corrected to the priors asked for"
            checks.append(same(self.priors_, self._expected_priors(expected), "priors", claim))
            odds = posterior * self.priors_ / self.training_priors_
            posterior = odds / odds.sum(axis=1, keepdims=True)
        every = self._all_costs(X, None, len(posterior))
        expected_cost = np.zeros((len(posterior), every.shape[-2]))
        for k in range(posterior.shape[1]):
            expected_cost += posterior[:, k, None] * every[..., k]
        taken = self.predict(X)
        paid = np.full(len(taken), np.inf)  # what is no action costs too much
        for a, label in enumerate(self._labels(self.actions_)):
            paid[taken == label] = expected_cost[taken == label, a]
        regret = paid - expected_cost.min(axis=1)
        largest = max(float(np.abs(every).max()), np.finfo(float).tiny)
        claim = (
            "no action has a lower expected cost than the one taken, on any row, by more than this share of the largest cost"
        )
        checks.append(Check("regret", float(regret.max()) / largest, SAME_LIMIT, "proof", claim))
        claim = "the risks are the expected costs of the actions"
        checks.append(same(self.risk(X), expected_cost, "risk", claim, floor=largest))
        return Certificate(*checks, subject=repr(self))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "actions_")

    def _posterior(self, X):
        """Give the classifier's own probabilities, (rows, classes)."""
        check_is_fitted(self)
        posterior = np.asarray(self.estimator_.predict_proba(X))
        if posterior.ndim != 2 or posterior.shape[1] != len(self.classes_):
            raise ValueError(
                f"predict_proba gives the shape {posterior.shape}, not a column for each of {len(self.classes_)} classes."
            )
        return posterior

    def _ratio(self):
        """Give π′/π, or None if nothing is to be corrected."""
        if self.priors_ is None or np.array_equal(self.priors_, self.training_priors_):
            return None
        return self.priors_ / self.training_priors_

    def _table(self, X, costs, n_rows):
        """Give the costs of the actions alone, (a, k) or (n, a, k)."""
        if costs is None:
            if self.costs_ is not None:
                return self.costs_
            costs = _of_rows(self.costs, X, "costs")
        table = checked_costs(costs, len(self.classes_), len(self.actions_), n_rows)
        return table if table.ndim == 3 else np.asarray(in_order(costs, self.actions_, self.classes_), dtype=float)

    def _all_costs(self, X, costs, n_rows):
        """Give the costs of the actions, with those of a refusal as the last action if there is one."""
        table, reject = self._table(X, costs, n_rows), self.reject_cost
        if reject is None:
            return table
        if callable(reject):
            each = np.asarray(_of_rows(reject, X, "reject_cost"), dtype=float)
            if each.shape != (n_rows,) or not (each >= 0).all() or not np.isfinite(each).all():
                raise ValueError(f"reject_cost must give a number of at least 0 for each of {n_rows} rows; got {each.shape}.")
            table, reject = np.broadcast_to(table, (n_rows, *table.shape[-2:])), each[:, None, None]
        last = np.broadcast_to(reject, (*table.shape[:-2], 1, table.shape[-1]))
        return np.concatenate([table, last], axis=-2)

    def _weighted_costs(self, X, costs, n_rows):
        """Give costs under which the classifier's own probabilities decide as the corrected ones do."""
        table = self._all_costs(X, costs, n_rows)
        if costs is None and self.costs is None:
            table = table - 1.0  # −δ: exactly the class of the largest probability, without the rounding of a sum
        ratio = self._ratio()
        return table if ratio is None else table * ratio

    def _labels(self, actions):
        """Give the labels of the actions, with that of a refusal last if there is one."""
        if self.reject_cost is None:
            return actions
        label = self.reject_label
        if label is None:
            label = -1 if actions.dtype.kind in "iuf" else "rejected"
        if label in actions.tolist():
            raise ValueError(f"The label {label!r} of a refused row is an action: choose another reject_label.")
        if label != label:
            raise ValueError("NaN as reject_label equals nothing, not even itself: choose a label that can be found again.")
        mixed = isinstance(label, str) != (actions.dtype.kind in "US")
        dtype = object if mixed or actions.dtype.kind == "b" else None
        return np.array([*actions.tolist(), label], dtype=dtype)


def _of_rows(function, X, name):
    if is_stored(X):
        raise ValueError(f"{name} is a function of the rows and needs them in memory: pass {name} of each row, or an array X.")
    return function(X)


def _visible_classes(X, y, sample_weight):
    """Give the classes of a target in memory, where that needs no more than a look; else None."""
    if y is None or is_stored(X) or isinstance(sample_weight, str):
        return None
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "biuUS":
        return None
    if sample_weight is not None and not np.all(np.asarray(sample_weight) > 0):
        return None  # whether a class without weight is a class is for the classifier to say
    found = np.unique(labels)
    return found if len(found) > 1 else None
