"""scikit-learn's own checks, on every estimator of the library."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import lemmata

# Only what scikit-learn itself lists for its estimator of the same name, with the reason.
SHUFFLED = "the check shuffles the repeated rows, and a seed then draws other starting rows"
EXPECTED_FAILURES = {
    "KMeans": {
        "check_sample_weight_equivalence_on_dense_data": SHUFFLED,
        "check_sample_weight_equivalence_on_sparse_data": SHUFFLED,
    }
}


@pytest.mark.filterwarnings("ignore:Only . of . clusters")  # tables with four distinct rows
@parametrize_with_checks(
    [cls() for _, cls in lemmata.all_estimators()],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
