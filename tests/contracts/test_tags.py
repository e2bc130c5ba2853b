"""What kind of model an estimator says it is, it is: generative models draw rows and tell how probable rows are."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import is_classifier

import lemmata
from contracts.problems import ESTIMATORS, problem
from lemmata.core.estimator import Classifier, model_tags
from lemmata.graphical import BayesNet, LogLinearModel
from lemmata.hmm import GaussianHMM, HMMClassifier
from lemmata.hmm.hidden_markov import HiddenMarkovModel
from lemmata.markov import MarkovChain, MarkovRanker
from lemmata.semi_supervised import RandomWalkClassifier
from lemmata.state_space import LinearGaussianModel
from lemmata.svm import SVC

# Families of models with a law of the rows; all others know the target given the row at most.
GENERATIVE = {"discriminant_analysis", "graphical", "hmm", "markov", "mixture", "naive_bayes", "state_space"}
ALSO = {"LatentDirichletAllocation", "ProbabilisticPCA", "VariationalAutoencoder"}
EXCEPT = {"MarkovRanker"}  # gives ranks: the games are given, not drawn
every = pytest.mark.parametrize(("name", "cls"), lemmata.all_estimators(), ids=[name for name, _ in lemmata.all_estimators()])

WEATHER = {"rain": ["no", "no", "yes", "yes", "no"], "wet": ["no", "yes", "yes", "yes", "no"]}
WALK = [0, 1, 1, 0, 1, 0, 0, 1]


def log_law(cls):
    """Name of the method that gives log p(x), or log p(x, y)."""
    names = ["joint_log_likelihood"] if issubclass(cls, Classifier) else ["score_samples", "log_likelihood"]
    if issubclass(cls, HiddenMarkovModel):
        names = ["score"]  # hmmlearn's name: its score_samples gives posteriors as well
    return next((name for name in names if callable(getattr(cls, name, None))), None)


def made(cls):
    """An instance; an estimator that needs arguments has its own law and says so by its class alone."""
    try:
        return cls()
    except TypeError:
        return cls.__new__(cls)


@pytest.mark.item("NBR-07")
@every
def test_a_generative_model_draws_and_has_a_law(name, cls):
    family = cls.__module__.split(".")[1]
    assert cls.generative == ((family in GENERATIVE or name in ALSO) and name not in EXCEPT)
    if cls.generative:
        assert callable(getattr(cls, "sample", None)), f"{name} is generative and draws no rows"
        assert log_law(cls), f"{name} is generative and has no log p(x) or log p(x, y)"
    elif issubclass(cls, Classifier):
        assert not hasattr(cls, "joint_log_likelihood"), f"{name} knows log p(x, y) and is not called generative"


@pytest.mark.item("NBR-07")
@every
def test_a_probabilistic_model_gives_a_distribution_away(name, cls):
    model = made(cls)
    given = cls.generative or hasattr(model, "predict_proba") or hasattr(model, "predict_dist")
    assert model_tags(model).probabilistic == given
    assert model_tags(model).generative == cls.generative


def test_tags_follow_the_parameters():
    assert not model_tags(SVC()).probabilistic
    assert model_tags(SVC(probability=True)).probabilistic
    assert model_tags(RandomWalkClassifier()) == (False, True)
    assert model_tags(MarkovRanker()) == (False, False)


@pytest.mark.item("NBR-07")
@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if cls.generative], ids=lambda cls: cls.__name__)
def test_draws_are_rows_that_the_law_knows(cls):
    task = problem(cls)
    model = task.fit()
    drawn = model.sample(20)
    rows = drawn[0] if isinstance(drawn, tuple) else drawn
    assert rows.shape == (20, task.X.shape[1])
    logs = np.asarray(getattr(model, log_law(cls))(rows))
    assert np.isfinite(logs).all()
    if not is_classifier(model):
        assert logs.shape == (() if isinstance(model, HiddenMarkovModel) else (20,))  # a sequence is probable as a whole
        return
    assert set(np.unique(drawn[1])) <= set(model.classes_)
    assert logs.shape == (20, len(model.classes_))
    posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))  # log p(x, y) holds Bayes' rule
    np.testing.assert_allclose(posterior, model.predict_proba(rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(logsumexp(logs, axis=1), model.score_samples(rows), rtol=1e-9, atol=1e-12)


@pytest.mark.item("NBR-07")
def test_so_do_models_of_other_things_than_tables():
    net = BayesNet([("rain", "wet")], alpha=1.0).fit(WEATHER)
    assert np.isfinite(net.log_likelihood(net.sample(10, random_state=0)))
    field = LogLinearModel([(("rain", "wet"), "indicator")]).fit(WEATHER)
    assert np.isfinite(field.log_likelihood(field.sample(10, random_state=0)))
    chain = MarkovChain().fit(WALK)
    assert np.isfinite(chain.log_likelihood(chain.sample(10, random_state=0)))
    series = LinearGaussianModel(1.0, 1.0, 1.0, 1.0)
    assert np.isfinite(series.log_likelihood(series.sample(10, random_state=0)[0]))


@pytest.mark.item("NBR-07")
def test_a_classifier_of_sequences_draws_sequences():
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(30, 1)) + 5 * (i % 2) for i in range(6)]
    model = HMMClassifier(GaussianHMM(1, random_state=0), class_prior=[0.25, 0.75]).fit(sequences, ["low", "high"] * 3)
    drawn, labels = model.sample(40, random_state=0, length=12)
    assert {s.shape for s in drawn} == {(12, 1)}
    assert np.array_equal(model.predict(drawn), labels)  # they lie five standard deviations apart, twelve times
    joint = model.joint_log_likelihood(drawn)
    np.testing.assert_allclose(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), model.predict_proba(drawn), rtol=1e-9)
    np.testing.assert_allclose(joint - model.log_likelihood(drawn), np.log([[0.25, 0.75]] * 40), rtol=1e-9)
