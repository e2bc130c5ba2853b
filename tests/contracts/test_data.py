"""Every estimator takes every kind of table, keeps its promises at the edges, and refuses nonsense in one sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from contracts.problems import (
    ESTIMATORS,
    NAMES,
    OF_ROWS,
    assert_same_bits,
    attribute,
    fitted,
    forget_names,
    needs_weights,
    predictions,
    problem,
)

estimators = pytest.mark.parametrize("cls", ESTIMATORS, ids=NAMES)
COLUMNS = ["a", "b", "c", "d"]


FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=COLUMNS),
    "polars": lambda X: pl.DataFrame(X, schema=COLUMNS),
    "arrow": lambda X: pa.table({c: X[:, j] for j, c in enumerate(COLUMNS)}),
}


@estimators
@pytest.mark.parametrize("kind", FRAMES)
def test_frames(cls, kind):
    task = problem(cls)
    model = task.fit(FRAMES[kind](task.X))
    assert list(model.feature_names_in_) == COLUMNS
    forget_names(model)
    assert_same_bits(model, task.fit())
    model = task.fit(FRAMES[kind](task.X))
    assert np.array_equal(predictions(model, FRAMES[kind](task.X)), predictions(task.fit(), task.X))
    with pytest.raises(ValueError, match="feature names"):
        predictions(model, FRAMES["pandas"](task.X).rename(columns={"a": "z"}))


@estimators
def test_memory_layouts_do_not_matter(cls):
    task = problem(cls)
    expected = task.fit()
    wide = np.zeros((2 * len(task.X), 8))
    wide[::2, ::2] = task.X
    read_only = task.X.copy()
    read_only.flags.writeable = False
    for X in (np.asfortranarray(task.X), wide[::2, ::2], read_only, task.X.tolist()):
        assert_same_bits(task.fit(X), expected)


@estimators
def test_float32_in_float32_out(cls):
    task = problem(cls)
    X = task.X.astype(np.float32)
    model, double = task.fit(X), task.fit(X.astype(float))
    if predictions(double, X.astype(float)).dtype.kind == "f":
        assert predictions(model, X).dtype == np.float32
        for frame in FRAMES.values():
            assert predictions(task.fit(frame(X)), frame(X)).dtype == np.float32
    for name, value in fitted(model).items():
        value, other = np.asarray(value), np.asarray(attribute(double, name))
        if value.dtype.kind == "f":
            # 1e-5: a hundred roundings of float32
            np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-5 * np.abs(other).max(), err_msg=name)


@estimators
def test_integer_weights_are_repeated_rows(cls):
    task = problem(cls)
    needs_weights(task.model)
    weight = np.random.default_rng(3).integers(0, 4, len(task.X))
    y = None if task.y is None else np.repeat(task.y, weight)
    weighted, repeated = task.fit(sample_weight=weight.astype(float)), task.fit(np.repeat(task.X, weight, axis=0), y)
    made, expected = (np.asarray(predictions(model, task.X)) for model in (weighted, repeated))
    if made.dtype.kind == "f":
        np.testing.assert_allclose(made, expected, rtol=1e-8, atol=1e-8)  # the same sums in another order
    else:
        assert np.array_equal(made, expected)
    for name, value in fitted(repeated).items():
        if name in OF_ROWS:
            continue
        if np.shape(value) == (weight.sum(),):
            value = np.asarray(value)[np.cumsum(weight)[weight > 0] - 1]
            np.testing.assert_array_equal(np.asarray(attribute(weighted, name))[weight > 0], value, err_msg=name)
        elif np.asarray(value).dtype.kind == "f":
            # 1e-9: the same sums in another order, times the conditioning of these problems
            np.testing.assert_allclose(attribute(weighted, name), value, rtol=1e-9, atol=1e-9, err_msg=name)


@estimators
def test_zero_weight_is_absence(cls):
    task = problem(cls)
    needs_weights(task.model)
    weight = (np.arange(len(task.X)) % 5 > 0).astype(float)
    X = task.X.copy()
    X[weight == 0] *= 1e6  # rows that would be noticed
    y = None if task.y is None else task.y[weight > 0]
    weighted, without = task.fit(X, sample_weight=weight), task.fit(X[weight > 0], y)
    for name, value in fitted(without).items():
        if np.shape(value) == (int(weight.sum()),):
            continue  # labels of rows that are not there
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(attribute(weighted, name), value, rtol=1e-9, atol=1e-9, err_msg=name)
    with pytest.raises(ValueError, match=r"[Ee]very sample weight is zero|zero"):
        task.fit(sample_weight=np.zeros(len(task.X)))


@estimators
@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e20, 1e100])
@pytest.mark.filterwarnings("ignore:No column varies by as much as reg_covar")
def test_any_scale(cls, scale):
    task = problem(cls)
    if get_tags(task.model).input_tags.categorical:
        pytest.skip("counts and codes have no units")
    model, X = task.fit(), task.X * scale
    scaled = task.fit(X)
    assert task.certify(scaled, X).holds
    if hasattr(model, "labels_"):
        assert np.array_equal(model.labels_, scaled.labels_)
    penalties = {"C", "alpha", "prior_precision"}  # which are not free of units
    if is_regressor(model) and not penalties & model.get_params().keys():
        # 1e-7: powers of the scale round, and the problem's conditioning multiplies that
        np.testing.assert_allclose(predictions(scaled, X), predictions(model, task.X), rtol=1e-7)


@estimators
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_degenerate_tables(cls):
    task = problem(cls, n=30)
    constant = task.X.copy()
    constant[:, 1] = 2.0 if get_tags(task.model).input_tags.categorical else 4.2
    duplicated = task.X[np.zeros(30, dtype=int)]
    for X in (constant, np.repeat(task.X[:15], 2, axis=0), duplicated, np.ones_like(task.X)):
        model = task.fit(X)
        assert np.isfinite(predictions(model, X)).all()
        assert task.certify(model, X).holds, str(task.certify(model, X))


@estimators
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_row(cls):
    task = problem(cls)
    sizes = {"n_clusters", "n_components"} & set(task.model.get_params())
    task.model.set_params(**dict.fromkeys(sizes, 1))
    X, y = task.X[:1], None if task.y is None else task.y[:1]
    if is_classifier(task.model):
        with pytest.raises(ValueError, match="at least two classes, and y holds one class only"):
            task.fit(X, y)
        return
    model = task.fit(X, y)
    assert np.isfinite(predictions(model, X)).all()
    assert (model.certify(X, y) if y is not None else model.certify(X)).holds


@estimators
def test_holes_are_part_of_the_table_where_they_are_allowed(cls):
    task = problem(cls)
    if not get_tags(task.model).input_tags.allow_nan:
        pytest.skip("takes complete rows")
    X = task.X.astype(float).copy()
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    model = task.fit(X)
    assert task.certify(model, X).holds, str(task.certify(model, X))
    assert np.isfinite(predictions(model, X)).all()
    assert_same_bits(task.fit(np.asfortranarray(X)), model)
    none = task.X.astype(float).copy()
    none[:, 1] = np.nan
    # Where values are counted or only parted, a column without any says nothing; where it would need a mean, it has none.
    if get_tags(task.model).input_tags.categorical or get_tags(task.model).input_tags.string:
        assert task.certify(task.fit(none), none).holds
        return
    with pytest.raises(ValueError, match="Column 1 has no value"):
        task.fit(none)


@estimators
def test_nonsense_is_refused_in_one_sentence(cls):
    task = problem(cls)
    X, y = task.X, task.y

    def refuses(match, X, y=y):
        with pytest.raises(ValueError, match=match) as error:
            task.fit(X, y)
        assert len(str(error.value).strip().split("\n")[0]) < 250

    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        if np.isinf(value) or not get_tags(task.model).input_tags.allow_nan:
            spoiled = X.copy()
            spoiled[3, 2] = value
            refuses(word, spoiled)
    refuses("1D array|1 axes", X[:, 0])
    refuses("0 sample|no rows|minimum of 1", X[:0])
    refuses("0 feature", X[:, :0])
    if y is not None:
        refuses("inconsistent|rows", X, y[:-1])
        spoiled = y.astype(float)
        spoiled[0] = np.nan
        refuses("NaN", X, spoiled)
        with pytest.raises(ValueError, match="requires y"):
            task.model.fit(X, None)
    if has_fit_parameter(task.model, "sample_weight"):
        with pytest.raises(ValueError, match=r"negative|Negative"):
            task.fit(sample_weight=-np.ones(len(X)))
        with pytest.raises(ValueError, match="sample_weight must"):
            task.fit(sample_weight="balanced")
    if not get_tags(task.model).input_tags.string:
        with pytest.raises(ValueError, match=r"could not convert|numbers"):
            task.fit(np.full((5, 4), "text"), None if y is None else y[:5])
    model = task.fit()
    with pytest.raises(ValueError, match="features"):
        predictions(model, X[:, :-1])
    with pytest.raises(TypeError, match="unexpected keyword"):
        cls(no_such_parameter=1)
    with pytest.raises(ValueError, match="Invalid parameter"):
        task.model.set_params(no_such_parameter=1)


@estimators
def test_probabilities_are_valid_and_predict_is_their_argmax(cls):
    task = problem(cls)
    model = task.fit()
    if not hasattr(model, "predict_proba"):
        pytest.skip("gives no probabilities")
    p = model.predict_proba(task.X)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)  # a few roundings
    classes = getattr(model, "classes_", np.arange(p.shape[1]))  # components of a mixture have numbers
    assert np.array_equal(model.predict(task.X), classes[p.argmax(axis=1)])


@estimators
def test_no_variance_is_negative(cls):
    for seed in range(5):
        for name, value in fitted(problem(cls, seed).fit()).items():
            if "covariance" in name and np.ndim(value) > 1 and np.shape(value)[-1] == np.shape(value)[-2]:
                value = np.diagonal(value, axis1=-2, axis2=-1)
            if any(word in name for word in ("variance", "errors", "error_")):
                assert (np.asarray(value) >= 0).all(), name


@estimators
def test_every_public_parameter_and_attribute_is_documented(cls):
    task = problem(cls)
    for name in task.model.get_params():
        assert f"{name} :" in cls.__doc__ or f"{name}, " in cls.__doc__, f"parameter {name}"
    for name in fitted(task.fit()):
        if "." not in name and name not in ("n_features_in_", "feature_names_in_"):
            assert name in cls.__doc__, f"attribute {name}"


def test_the_warning_for_too_few_distinct_rows_says_so():
    cls = dict(zip(NAMES, ESTIMATORS, strict=True))["KMeans"]
    with pytest.warns(ConvergenceWarning, match="Only 2 of 3"):
        cls(3, random_state=0).fit([[0.0], [0.0], [1.0], [1.0]])
