"""Every fit is certified; every sabotaged fit is refused."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import is_classifier

from contracts.problems import ESTIMATORS, NAMES, fitted, needs_weights, problem, with_attribute
from lemmata.core.certificate import free

SEEDS = range(3)
estimators = pytest.mark.parametrize("cls", ESTIMATORS, ids=NAMES)


@estimators
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_default_fit_is_a_certified_fit(cls, seed, dtype):
    task = problem(cls, seed)
    X = task.X.astype(dtype)
    certificate = task.certify(task.fit(X), X)
    assert certificate.holds, str(certificate)


@estimators
@pytest.mark.parametrize("seed", SEEDS)
def test_a_weighted_fit_is_certified(cls, seed):
    task = problem(cls, seed)
    needs_weights(task.model)
    weight = np.random.default_rng(seed).integers(0, 4, len(task.X)).astype(float)
    model = task.fit(sample_weight=weight)
    assert task.certify(model, sample_weight=weight).holds
    other = np.random.default_rng(seed + 100).integers(0, 4, len(task.X)).astype(float)
    assert not task.certify(model, sample_weight=other).holds


def sabotaged(model):
    """Yield (name, model) with one fitted array changed: numbers by 1 % in a random direction, labels in one place."""
    rng = np.random.default_rng(7)
    for name, value in fitted(model).items():
        array = np.asarray(value)
        if name.endswith(("n_features_in_", "feature_names_in_")):
            continue
        if array.dtype.kind == "f":
            if not np.isfinite(array).all() or not np.any(array):
                continue  # 1 % of nothing is nothing
            changed = free(np.atleast_1d(array).astype(float), rng).reshape(array.shape).astype(array.dtype)
        elif array.size == 0:
            continue
        else:
            changed = array.copy()
            place = rng.integers(changed.size)
            changed.flat[place] = not changed.flat[place] if array.dtype.kind == "b" else changed.flat[place] + 1
        yield name, with_attribute(model, name, changed if array.ndim else changed[()])


@estimators
@pytest.mark.parametrize("seed", SEEDS)
def test_sabotage_is_refused(cls, seed):
    task = problem(cls, seed)
    model = task.fit()
    names = []
    for name, twin in sabotaged(model):
        names.append(name)
        try:
            certificate = task.certify(twin)
        except ValueError:  # the labels of y are no longer classes of the model
            assert name.endswith("classes_")
            continue
        assert not certificate.holds, f"1 % of {name} went unseen:\n{certificate}"
    assert names, "nothing was sabotaged"


@estimators
def test_classes_that_changed_places_are_refused(cls):
    task = problem(cls)
    if not is_classifier(task.model):
        pytest.skip("knows no classes")
    model = task.fit()
    with pytest.raises(ValueError, match=r"classes_ is .*, which is not sorted"):
        task.certify(with_attribute(model, "classes_", model.classes_[::-1]))


@estimators
def test_parameters_of_another_table_are_refused(cls):
    one, other = problem(cls, seed=1), problem(cls, seed=2)
    assert not one.certify(other.fit()).holds


@estimators
def test_a_checker_does_not_read_the_record_of_the_fit(cls):
    task = problem(cls)
    model = task.fit()
    before = task.certify(model).to_dict()
    for name in ("n_iter_", "converged_", "trace_"):
        if hasattr(model, name):
            setattr(model, name, None)
    assert task.certify(model).to_dict() == before


@estimators
def test_certifying_changes_nothing(cls):
    task = problem(cls)
    model = task.fit()
    before = deepcopy(fitted(model)), model.get_params()
    names = set(vars(model))
    task.certify(model)
    assert vars(model).keys() == names
    assert model.get_params() == before[1]
    assert fitted(model).keys() == before[0].keys()
    for key, value in fitted(model).items():
        assert np.array_equal(np.asarray(value), np.asarray(before[0][key])), key


@estimators
def test_an_unfitted_model_says_so(cls):
    from sklearn.exceptions import NotFittedError

    task = problem(cls)
    with pytest.raises(NotFittedError):
        task.certify(task.model)
