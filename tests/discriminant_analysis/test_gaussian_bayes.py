"""`GaussianBayes`, against brute force, SciPy's normal law and the true parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lemmata
from discriminant_analysis.naive_classes import drawn, joint, likeliest, log_posterior
from lemmata.decision import bayes_risk
from lemmata.discriminant_analysis import GaussianBayes, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.discriminant_analysis.structures import STRUCTURES, expanded
from lemmata.naive_bayes import GaussianNB

structures = pytest.mark.parametrize("structure", STRUCTURES)


def matrices_of(model):
    return expanded(model.covariance_, model.covariance, *model.means_.shape)


@pytest.mark.item("NBR-04", "NBR-05")
@structures
def test_a_fit_is_maximum_likelihood(structure):
    X, y, weight = drawn()
    model = GaussianBayes(structure, var_smoothing=0.0).fit(X, y, sample_weight=weight)
    counts, means, matrices = likeliest(X, y, weight, structure)
    assert_allclose(model.priors_, counts / counts.sum(), rtol=1e-14)
    assert_allclose(model.means_, means, rtol=1e-13)
    assert_allclose(matrices_of(model), matrices, rtol=1e-10, atol=1e-12)
    # No other parameters of the structure make the rows more likely: any step along a ray lowers the likelihood.
    best = value(X, y, weight, model.means_, matrices_of(model))
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = matrices_of(model) * np.exp(0.05 * rng.normal())
        assert value(X, y, weight, model.means_ + 0.02 * rng.normal(size=means.shape), moved) < best


def value(X, y, weight, means, matrices):
    """Log-likelihood of the rows given their classes, by SciPy."""
    laws = [multivariate_normal(mean, matrix) for mean, matrix in zip(means, matrices, strict=True)]
    return sum(weight[y == c] @ law.logpdf(X[y == c]) for c, law in enumerate(laws))


@pytest.mark.item("NBR-04", "NBR-05", "NBR-06")
@structures
@pytest.mark.parametrize("seed", [0, 1])
def test_missing_entries_are_integrated_out_exactly(structure, seed):
    X, y, _ = drawn(n=300, d=6, seed=seed, share=0.2)
    X[3] = np.nan  # a row of which nothing is known
    whole = drawn(n=300, d=6, seed=seed)[0]
    for rows in (whole, X):
        model = GaussianBayes(structure).fit(rows, y)
        truth = model.priors_, model.means_, matrices_of(model)
        # 1e-10 is the bar; what is left is rounding of the log-densities, which are tens to thousands
        assert_allclose(model.predict_log_proba(X), log_posterior(X, *truth), atol=1e-10, rtol=1e-11)
        assert_allclose(model.joint_log_likelihood(X), joint(X, *truth), atol=1e-10, rtol=1e-11)
        assert_allclose(model.score_samples(X), logsumexp(joint(X, *truth), axis=1), atol=1e-10, rtol=1e-11)
        assert_allclose(model.predict_proba(X[3:4])[0], model.priors_, rtol=1e-13)
        assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.item("NBR-04")
def test_with_the_true_parameters_it_is_the_bayes_rule():
    rng = np.random.default_rng(0)
    priors, means, scales = np.array([0.3, 0.7]), np.array([[0.0, 0.0], [1.5, -1.0]]), np.array([[1.0, 2.0], [0.5, 1.0]])
    model = GaussianBayes("diag").fit(rng.normal(size=(20, 2)), np.arange(20) % 2)
    model.priors_, model.means_, model.covariance_ = priors, means, scales**2
    X = rng.normal(size=(200, 2)) * 2
    likelihood = norm.pdf(X[:, None], means, scales).prod(axis=2) * priors
    posterior = likelihood / likelihood.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), posterior, rtol=1e-12)
    right = model.predict_proba(X)[np.arange(200), model.predict(X)]
    assert_allclose(1.0 - right, bayes_risk(posterior), atol=1e-14)  # no rule errs less


@pytest.mark.item("NBR-04")
def test_the_boundary_of_two_classes_is_a_quadric_and_a_plane_if_they_share_it():
    X, y, _ = drawn(k=2)
    rng = np.random.default_rng(1)
    start, direction, steps = X.mean(axis=0), rng.normal(size=4), np.arange(5.0)
    line = start + steps[:, None] * direction
    scale = np.abs(GaussianBayes("full").fit(X, y).decision_function(line)).max()
    for structure, degree in (("full", 2), ("diag", 2), ("spherical", 2), ("tied", 1), ("tied-diag", 1)):
        score = GaussianBayes(structure).fit(X, y).decision_function(line)
        assert_allclose(np.diff(score, degree + 1), 0, atol=1e-9 * scale)  # differences beyond the degree vanish
        assert np.abs(np.diff(score, degree)).max() > 1e-6 * scale


@pytest.mark.item("NBR-05")
def test_linear_and_quadratic_analysis_are_two_of_the_structures():
    X, y, weight = drawn()
    tied = GaussianBayes("tied", var_smoothing=1e-6).fit(X, y, sample_weight=weight)
    linear = LinearDiscriminantAnalysis().fit(X, y, sample_weight=weight)
    assert_array_equal(tied.covariance_, linear.covariance_)
    assert_allclose(linear.predict_log_proba(X), tied.predict_log_proba(X), rtol=1e-10, atol=1e-11)
    full = GaussianBayes("full", shrinkage=0.2).fit(X, y)
    quadratic = QuadraticDiscriminantAnalysis(shrinkage=0.2).fit(X, y)
    assert_array_equal(full.covariance_, quadratic.covariance_)
    assert_array_equal(full.predict_proba(X), quadratic.predict_proba(X))


@structures
@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.4, 1.0, "auto"])
def test_every_shrinkage_is_certified_and_sabotage_refused(structure, shrinkage):
    X, y, weight = drawn(n=90)
    model = GaussianBayes(structure, shrinkage=shrinkage, priors=[0.2, 0.5, 0.3]).fit(X, y, sample_weight=weight)
    assert_allclose(model.priors_, [0.2, 0.5, 0.3], rtol=1e-15)
    certificate = model.certify(X, y, sample_weight=weight)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    for name in ("priors_", "means_", "covariance_", "class_count_"):
        kept = getattr(model, name)
        setattr(model, name, kept * 1.01)
        assert not model.certify(X, y, sample_weight=weight).holds, name
        setattr(model, name, kept)
    assert not GaussianBayes(structure, shrinkage=0.35).fit(X, y).certify(X, y, sample_weight=weight).holds


@pytest.mark.parametrize("shrinkage", [0.3, "auto"])
def test_shrinkage_helps_where_rows_are_few(shrinkage):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(2, 30)) * 0.35
    y = np.arange(80) % 2
    X, Z = (mean[np.arange(m) % 2] + rng.normal(size=(m, 30)) for m in (80, 4000))
    plain = GaussianBayes("full").fit(X, y)
    assert (
        GaussianBayes("full", shrinkage=shrinkage).fit(X, y).score(Z, np.arange(4000) % 2)
        > plain.score(Z, np.arange(4000) % 2) + 0.05
    )


def test_a_singular_covariance_is_said_to_be_one():
    X, y, _ = drawn(n=60, d=3)
    double = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    with pytest.warns(ConvergenceWarning, match="The covariance of class 0 is singular .some columns follow from others"):
        model = GaussianBayes("full").fit(double, y)
    assert np.isfinite(model.predict_log_proba(double)).all()
    assert model.certify(double, y).holds
    assert (model.predict(double) == GaussianBayes("full").fit(X, y).predict(X)).mean() > 0.98  # the copy says nothing new
    with pytest.warns(ConvergenceWarning, match="The covariance of the classes is singular"):
        GaussianBayes("tied").fit(double, y)
    constant = np.column_stack([X, np.full(60, 7.0)])
    with pytest.warns(ConvergenceWarning, match=r"The covariance of the classes is singular .column 3 does not vary") as said:
        GaussianBayes("tied").fit(constant, y)
    assert said[0].filename == __file__
    rows = np.concatenate([np.flatnonzero(y == 0)[:3], np.flatnonzero(y > 0)])
    with pytest.warns(ConvergenceWarning, match="weight of 3 in 3 columns.*Set shrinkage"):
        GaussianBayes("full").fit(X[rows], y[rows])
    GaussianBayes("full", shrinkage=0.1).fit(X[rows], y[rows])  # which silences it
    GaussianBayes("full", shrinkage=0.1).fit(double, y)
    with pytest.raises(ValueError, match="set shrinkage or var_smoothing above 0"):
        GaussianBayes("full", var_smoothing=0.0).fit(X[rows], y[rows])
    X[y == 1, 0] = 1.0
    with pytest.raises(ValueError, match="does not vary within a class"):
        GaussianBayes("diag", var_smoothing=0.0).fit(X, y)
    assert np.isfinite(GaussianBayes("diag").fit(X, y).predict_log_proba(X)).all()


@pytest.mark.item("NBR-07")
@structures
def test_what_is_drawn_has_the_law_that_was_fitted(structure):
    X, y, _ = drawn()
    names = np.array(["a", "b", "c"])
    model = GaussianBayes(structure).fit(X, names[y])
    assert model.generative
    rows, labels = model.sample(40_000, random_state=0)
    again = GaussianBayes(structure).fit(rows, labels)
    n = again.class_count_
    # Five standard errors of each estimate: a false alarm once in a million numbers.
    assert (np.abs(n / 40_000 - model.priors_) < 5 * np.sqrt(model.priors_ * (1 - model.priors_) / 40_000)).all()
    deviations = np.sqrt(np.diagonal(matrices_of(model), axis1=1, axis2=2))
    assert (np.abs(again.means_ - model.means_) < 5 * deviations / np.sqrt(n)[:, None]).all()
    unit = deviations[:, :, None] * deviations[:, None]
    assert (np.abs(matrices_of(again) - matrices_of(model)) < 5 * np.sqrt(2 / n)[:, None, None] * unit).all()
    assert_array_equal(model.sample(7, random_state=3)[0], model.sample(7, random_state=3)[0])
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
        model.sample(0)
    # log p(x) is a density: its mean over its own draws is minus its entropy, here of one class
    alone = model.joint_log_likelihood(rows)
    assert_allclose(model.score_samples(rows), logsumexp(alone, axis=1), rtol=1e-12)


@structures
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_learning_in_parts_is_learning_at_once(structure, share):
    X, y, weight = drawn(share=share if structure in ("diag", "tied-diag", "spherical") else 0.0)
    weight = weight + 0.5
    whole = GaussianBayes(structure).fit(X, y, sample_weight=weight)
    model = GaussianBayes(structure)
    with pytest.raises(ValueError, match="must name all classes"):
        model.partial_fit(X, y)
    for rows in np.array_split(np.argsort(y, kind="stable"), 5):  # the first parts lack classes
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weight[rows])
    for name in ("class_count_", "priors_", "means_", "covariance_"):
        assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-10, atol=1e-12)
    assert model.certify(X, y, sample_weight=weight).holds
    with pytest.raises(ValueError, match="not the same as in the first call"):
        model.partial_fit(X, y, classes=[0, 1])


def test_what_partial_fit_cannot_do_it_says():
    X, y, _ = drawn(share=0.1)
    with pytest.raises(ValueError, match="must be fitted all at once"):
        GaussianBayes("full").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="looks at all rows together"):
        GaussianBayes("full", shrinkage="auto").partial_fit(X, y, classes=[0, 1, 2])


LESS = {  # what was learned, what is asked for then, and whether the former tells the latter
    "a matrix for each class to one for all": (GaussianBayes("full"), {"covariance": "tied"}, True),
    "correlations that were weakened": (LinearDiscriminantAnalysis(shrinkage="auto"), {"shrinkage": 0.1}, True),
    "matrices to variances": (GaussianBayes("full"), {"covariance": "tied-diag"}, True),
    "one matrix to many": (GaussianBayes("tied"), {"covariance": "full"}, False),
    "one matrix to variances of each class": (GaussianBayes("tied"), {"covariance": "diag"}, False),
    "variances to matrices": (GaussianBayes("diag"), {"covariance": "full"}, False),
    "variances to one matrix": (GaussianBayes("spherical"), {"covariance": "tied"}, False),
}


@pytest.mark.parametrize("case", LESS)
def test_going_on_with_another_covariance_takes_what_was_learned_or_says_no(case):
    X, y, _ = drawn()
    model, other, told = LESS[case]
    model = clone(model).fit(X[:150], y[:150]).set_params(**other)
    if not told:
        with pytest.raises(ValueError, match="does not tell the covariances asked for now"):
            model.partial_fit(X[150:], y[150:])
        return
    model.partial_fit(X[150:], y[150:])
    assert_allclose(model.covariance_, clone(model).fit(X, y).covariance_, rtol=1e-10, atol=1e-12)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis(), GaussianBayes(), GaussianNB()], ids=repr)
def test_what_is_refused_leaves_the_model_as_it_was(model):
    X, y, _ = drawn()
    model = clone(model).fit(X[:150], y[:150])
    before = {name: np.copy(value) for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(**({"n_components": 5} if hasattr(model, "n_components") else {"priors": [0.1, 0.2, 0.3]}))
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="must"):
            learn(X[150:, :], y[150:])
        for name, value in before.items():
            assert_array_equal(getattr(model, name), value)


def test_priors_are_checked():
    X, y, _ = drawn()
    with pytest.raises(ValueError, match="priors must hold 3 numbers"):
        GaussianBayes(priors=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="sum to 1"):
        GaussianBayes(priors=[0.5, 0.5, 0.5]).fit(X, y)
    model = GaussianBayes(priors=[0.0, 0.5, 0.5]).fit(X, y)
    assert (model.predict_proba(X)[:, 0] == 0).all()
    assert model.certify(X, y).holds


def test_far_away_probabilities_are_still_probabilities():
    X, y, _ = drawn(d=2)
    far = np.array([[1e200, -1e200], [1e308, 1e308], [-1e160, np.nan], [1e30, 0.0]])
    for structure in STRUCTURES:
        p = GaussianBayes(structure).fit(X, y).predict_proba(far)
        assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    p = LinearDiscriminantAnalysis().fit(X, y).predict_proba(far)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@structures
def test_shifts_scales_and_orders_change_nothing(structure):
    X, y, _ = drawn(share=0.1)
    model = GaussianBayes(structure).fit(X, y)
    p = model.predict_log_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    assert_allclose(GaussianBayes(structure).fit(X[order], y[order]).predict_log_proba(X), p, rtol=1e-6, atol=1e-6)
    moved = 7.0 * X + 1000.0
    assert_allclose(GaussianBayes(structure).fit(moved, y).predict_log_proba(moved), p, rtol=1e-6, atol=1e-6)
    if structure != "spherical":  # which is not free of the units of its columns
        unequal = X * np.array([1e-6, 1.0, 1e6, 3.0])
        assert_allclose(GaussianBayes(structure).fit(unequal, y).predict_log_proba(unequal), p, rtol=1e-6, atol=1e-6)


@structures
def test_any_number_of_threads_gives_the_same_bits_with_holes(structure):
    X, y, _ = drawn(share=0.1)
    fits = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads, block_rows=32):
            fits.append(GaussianBayes(structure).fit(X, y))
    assert fits[0].means_.tobytes() == fits[1].means_.tobytes()
    assert fits[0].covariance_.tobytes() == fits[1].covariance_.tobytes()


@pytest.mark.parametrize("shrinkage", [None, 0.2, 1.0, "auto"])
@structures
def test_fractions_of_rows_are_no_holes(structure, shrinkage):
    """A certificate of weighted rows is a proof: sums of weights that differ by rounding do not look like missing entries."""
    X, y, _ = drawn()
    weight = np.random.default_rng(0).random(len(y))
    certificate = GaussianBayes(structure, shrinkage=shrinkage).fit(X, y, sample_weight=weight).certify(X, y, weight)
    assert certificate.holds
    assert certificate.kind == "proof"


def test_a_first_call_that_fails_leaves_the_next_one_first():
    X, y, _ = drawn()
    model = GaussianBayes()
    with pytest.raises(ValueError, match="not a class of the fit"):
        model.partial_fit(X, y, classes=[0, 1])
    assert_allclose(model.partial_fit(X, y, classes=[0, 1, 2]).means_, GaussianBayes().fit(X, y).means_, rtol=1e-13)


@pytest.mark.parametrize("model", [GaussianBayes("tied"), GaussianBayes("diag"), LinearDiscriminantAnalysis()], ids=repr)
def test_a_label_is_that_of_the_probabilities_as_given(model):
    """In single precision both are one half where the second class is ahead by 1e-9, and ties go to the first."""
    model.fit([[-2.0], [0.0], [0.0], [2.0]], ["a", "a", "b", "b"])
    near = np.array([[1e-9], [-1e-9], [1e-3]])
    assert_array_equal(model.predict(near), ["b", "a", "b"])
    p = model.predict_proba(near.astype(np.float32))
    assert (p[:2] == 0.5).all()
    assert_array_equal(model.predict(near.astype(np.float32)), ["a", "a", "b"])


@pytest.mark.parametrize("model", [GaussianBayes("diag"), GaussianBayes("full"), QuadraticDiscriminantAnalysis(), GaussianNB()])
def test_a_large_variance_hides_no_small_one(model):
    X, y, _ = drawn(d=2)
    X[y == 0, 0] *= 1e-4
    model = clone(model).fit(X, y)
    assert model.certify(X, y).holds
    variances = getattr(model, "var_", getattr(model, "covariance_", None))
    variances[(0,) * variances.ndim] *= 1.5
    model._derive() if hasattr(model, "_derive") else None
    assert "covariance" in [check.name for check in model.certify(X, y).failed]


@pytest.mark.parametrize("model", [GaussianBayes(), GaussianNB()])
def test_a_rare_class_has_its_prior_checked(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 1)), np.zeros(20_000, dtype=int)
    y[:3] = 1
    model = clone(model).fit(X, y)
    assert model.certify(X, y).holds
    priors = model.priors_ if hasattr(model, "priors_") else model.class_prior_
    priors[1] *= 1.001
    assert "priors" in [check.name for check in model.certify(X, y).failed]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis(), GaussianNB(), *map(GaussianBayes, STRUCTURES)], ids=repr)
def test_an_honest_fit_far_from_zero_is_certified(model, offset):
    X, y, _ = drawn(k=2, n=200)
    X = X + offset
    model = clone(model).fit(X, y)
    assert model.certify(X, y).holds, str(model.certify(X, y))


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize(
    "model", [*map(GaussianBayes, STRUCTURES), QuadraticDiscriminantAnalysis(), LinearDiscriminantAnalysis()]
)
def test_the_decision_is_a_number_however_far_a_row_is(model, dtype):
    X, y, _ = drawn(k=2, d=3)
    model = clone(model).set_params(priors=[0.2, 0.8]).fit(X.astype(dtype), y)
    large = 1e200 if dtype is float else 1e25
    far = np.array([[large] * 3, [-large, large, large], [large, np.nan, -large], [np.finfo(dtype).max] * 3], dtype=dtype)
    scores = model.decision_function(far)
    assert scores.dtype == dtype
    assert not np.isnan(scores).any()
    assert_array_equal(model.predict(far), model.classes_[(scores > 0).astype(int)])
    near = X[:50].astype(dtype)
    logs = model.joint_log_likelihood(near.astype(float))
    assert_allclose(model.decision_function(near), logs[:, 1] - logs[:, 0], rtol=1e-5, atol=1e-4)
