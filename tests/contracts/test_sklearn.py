"""scikit-learn's own checks, on every estimator of the library."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from contracts.problems import ESTIMATORS

# Only what scikit-learn itself lists for its estimator of the same name, and checks that do not ask the tags what a table for
# this estimator looks like; with the reason.
SHUFFLED = "the check shuffles the repeated rows, and a seed then draws other starting rows"
ORDERED = "the check shuffles the repeated rows, and learning row by row depends on their order"
FRACTIONS = "the check gives fractions, whatever the tags say, and these are refused where counts or codes are asked for"
BASKETS = "the check gives positive fractions in 30 columns: every item is in nearly every basket, and 2³⁰ sets are frequent"
CLASSIFIER = "the check takes whatever has predict_proba and reads sparse tables for a classifier"
IN_ORDER = "rows are a sequence, and what is said of one depends on those before and after it"
UNLABELED = "the check labels rows -1 and 1, and -1 means no label; scikit-learn spares its own of this kind by name"
EXPECTED_FAILURES = {
    "Apriori": {
        "check_sample_weight_equivalence_on_dense_data": BASKETS,
        "check_sample_weight_equivalence_on_sparse_data": BASKETS,
    },
    "RandomWalkClassifier": {"check_classifiers_classes": UNLABELED},
    **{
        name: {"check_methods_sample_order_invariance": IN_ORDER, "check_methods_subset_invariance": IN_ORDER}
        for name in ("CategoricalHMM", "GaussianHMM")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": SHUFFLED,
            "check_sample_weight_equivalence_on_sparse_data": SHUFFLED,
        }
        for name in ("BaggingClassifier", "BaggingRegressor", "RandomForestClassifier", "RandomForestRegressor")
    },
    "BernoulliMixture": {
        "check_estimator_sparse_array": CLASSIFIER,
        "check_estimator_sparse_matrix": CLASSIFIER,
    },
    "BinomialMixture": {
        "check_estimator_sparse_array": CLASSIFIER,
        "check_estimator_sparse_matrix": CLASSIFIER,
        "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
        "check_sample_weight_equivalence_on_sparse_data": FRACTIONS,
    },
    "CategoricalMixture": {
        "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    },
    "CategoricalNB": {
        "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    },
    "KMeans": {
        "check_sample_weight_equivalence_on_dense_data": SHUFFLED,
        "check_sample_weight_equivalence_on_sparse_data": SHUFFLED,
    },
    "KernelPerceptron": {
        "check_sample_weight_equivalence_on_dense_data": ORDERED,
        "check_sample_weight_equivalence_on_sparse_data": ORDERED,
    },
    "Perceptron": {
        "check_sample_weight_equivalence_on_dense_data": ORDERED,
        "check_sample_weight_equivalence_on_sparse_data": ORDERED,
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": ORDERED,
            "check_sample_weight_equivalence_on_sparse_data": ORDERED,
        }
        for name in (
            "GenerativeAdversarialNetwork",
            "MLPClassifier",
            "MLPRegressor",
            "ReinforceClassifier",
            "SGDClassifier",
            "VariationalAutoencoder",
        )
    },
}


@pytest.mark.filterwarnings("ignore:The covariance of (class|the classes)")  # tables with fewer rows than columns
@pytest.mark.filterwarnings("ignore:Only . of . clusters")  # tables with four distinct rows
@pytest.mark.filterwarnings("ignore:(Kernel)?Perceptron still makes mistakes")  # classes that overlap
@pytest.mark.filterwarnings("ignore:(SGDClassifier|MLPClassifier|MLPRegressor)'s loss still falls")  # fits of a few epochs
@pytest.mark.filterwarnings("ignore:VariationalAutoencoder's bound still rises")
@parametrize_with_checks(
    [cls() for cls in ESTIMATORS],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
