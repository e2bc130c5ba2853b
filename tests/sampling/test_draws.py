"""Draws: what is refused and why, tables, parts, pickles, and xarray."""

import pickle
import sys

import numpy as np
import pytest

from lemmata.core import diagnostics
from lemmata.sampling import Draws


def independent(chains=4, n=500, d=2, seed=0, **options):
    return Draws(np.random.default_rng(seed).normal(size=(chains, n, d)), **options)


def log_density(x):
    return -0.5 * float(x @ x)


@pytest.mark.item("SMP-10")
def test_means_with_evidence_are_given_and_others_refused():
    draws = independent(names=["a", "b"])
    np.testing.assert_allclose(draws.mean(), draws.values.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(draws.std(), draws.flat.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(draws.quantile([0.1, 0.5]), np.quantile(draws.flat, [0.1, 0.5], axis=0), rtol=1e-12)
    apart = draws.values.copy()
    apart[0, :, 1] += 2.0
    refused = Draws(apart, names=["a", "b"])
    for ask in (refused.mean, refused.std, lambda **options: refused.quantile(0.5, **options)):
        with pytest.raises(ValueError, match=r"of b is not to be believed: R-hat = 1\.\d+, above 1\.01.*check=False"):
            ask()
        assert ask(check=False).shape == (2,)
    assert refused["a"].mean().shape == (1,)


def test_reasons_to_refuse():
    with pytest.raises(ValueError, match=r"ESS = \d+ in the bulk, below 400\. Draw about 4 times as many"):
        independent(n=40, d=1).mean()
    with pytest.raises(ValueError, match=r"of x\[0\] \(and 1 more\).*3 draws a chain tell nothing"):
        independent(n=3).mean()
    stuck = np.tile(np.arange(3.0), (4, 100, 1))
    with pytest.raises(ValueError, match="never moved"):
        Draws(stuck).mean()
    with pytest.raises(ValueError, match="different stories"):
        Draws(np.repeat(np.arange(4.0), 100).reshape(4, 100, 1)).mean()
    bad = independent().values.copy()
    bad[1, 3, 0] = np.inf
    with pytest.raises(ValueError, match="not a finite number"):
        Draws(bad).mean()


def test_tails_are_asked_for_spreads_but_not_for_means():
    """A chain that visits its tails in one stretch has a bulk that moves well, and too few effective draws out there."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(4, 1000))
    for chain in x:
        for first in rng.choice(900, size=3, replace=False):
            chain[first : first + 25] = 3 + rng.random(25)
    draws = Draws(x[:, :, None])
    assert draws.rhat[0] <= 1.01
    assert draws.ess_tail[0] < 400 <= draws.ess_bulk[0]
    draws.mean()
    with pytest.raises(ValueError, match="in the tails"):
        draws.std()


def test_integers_may_be_certain_but_a_chain_must_move():
    values = np.random.default_rng(0).integers(0, 2, size=(4, 500, 2))
    values[:, :, 1] = 3
    assert Draws(values).mean()[1] == 3.0
    assert Draws(values).certify().holds
    with pytest.raises(ValueError, match="never moved"):
        Draws(values.astype(float)).mean()
    with pytest.raises(ValueError, match="never moved"):
        Draws(values[:, :, 1:]).mean()


def test_summary_says_pass_and_fail():
    draws = independent(names=["good", "bad"])
    draws.values[0, :, 1] += 3
    summary = draws.summary()
    assert summary.passed.tolist() == [True, False]
    text = str(summary).splitlines()
    assert text[1].endswith("pass")
    assert text[2].endswith("FAIL")
    assert "1 of 2 FAIL" in text[-1]
    np.testing.assert_allclose(summary.rhat, diagnostics.rhat(draws.values), rtol=1e-12)
    assert len(str(independent(n=2).summary()).splitlines()) == 4


def test_parts():
    draws = independent(n=10, d=3, names=["mu", "theta[0]", "theta[1]"])
    logs = Draws(draws.values, draws.values[:, :, 0], names=draws.names, acceptance=np.full(4, 0.3))
    np.testing.assert_array_equal(logs.discard(4).values, draws.values[:, 4:])
    np.testing.assert_array_equal(logs.discard(4).log_density, draws.values[:, 4:, 0])
    np.testing.assert_array_equal(logs.thin(3).values, draws.values[:, [0, 3, 6, 9]])
    np.testing.assert_array_equal(logs.thin(4).values, draws.values[:, [1, 5, 9]])
    assert logs["theta"].names == ("theta[0]", "theta[1]")
    assert logs[["theta[1]", "mu"]].names == ("theta[1]", "mu")
    np.testing.assert_array_equal(logs[["theta[1]", "mu"]].values, draws.values[:, :, [2, 0]])
    with pytest.raises(KeyError, match="no dimension is called 'nu'"):
        logs["nu"]
    with pytest.raises(ValueError, match="can be left out"):
        logs.discard(10)
    with pytest.raises(ValueError, match="step"):
        logs.thin(0)


def test_certificate_refuses_what_does_not_belong_together():
    draws = independent()
    draws.log_density = np.array([[log_density(x) for x in chain] for chain in draws.values])
    assert draws.certify(log_density).holds
    assert draws.certify(lambda X: -0.5 * (X**2).sum(axis=1), vectorized=True).holds
    assert draws.certify(log_density).kind == "evidence"
    assert draws.certify(log_density)["log density"].kind == "proof"
    for name in ("values", "log_density"):
        other = pickle.loads(pickle.dumps(draws))
        setattr(other, name, getattr(other, name) * 1.01)
        assert [check.name for check in other.certify(log_density).failed] == ["log density"]
    moved = pickle.loads(pickle.dumps(draws))
    moved.values[0, :, 1] += 3
    assert {"R-hat", "agreement"} <= {check.name for check in moved.certify().failed}
    assert {"ESS bulk", "ESS tail"} <= {check.name for check in draws.discard(450).certify().failed}
    with pytest.raises(ValueError, match="no log density"):
        independent().certify(log_density)


def test_shapes_and_names_are_checked():
    with pytest.raises(ValueError, match="chains, draws, dimensions"):
        Draws(np.zeros((4, 10)))
    with pytest.raises(ValueError, match="log_density"):
        Draws(np.zeros((4, 10, 1)), np.zeros(10))
    with pytest.raises(ValueError, match="names"):
        Draws(np.zeros((4, 10, 2)), names=["a", "a"])
    with pytest.raises(ValueError, match="acceptance"):
        Draws(np.zeros((4, 10, 1)), acceptance=[0.5])


def test_pickle():
    draws = independent(names=["a", "b"], acceptance=np.full(4, 0.2))
    assert draws.rhat.shape == (2,)
    again = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(again.values, draws.values)
    assert again.names == draws.names


def test_to_arviz():
    pytest.importorskip("xarray")
    draws = independent(d=3, names=["mu", "theta[0]", "theta[1]"], acceptance=np.full(4, 0.3), log_density=np.zeros((4, 500)))
    tree = draws.to_arviz()
    assert set(tree.children) == {"posterior", "sample_stats"}
    assert tree["posterior"]["mu"].dims == ("chain", "draw")
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "theta_dim_0")
    np.testing.assert_array_equal(tree["posterior"]["theta"].values, draws.values[:, :, 1:])
    assert tree["sample_stats"]["lp"].shape == (4, 500)
    assert independent().to_arviz()["posterior"]["x"].shape == (4, 500, 2)


def test_without_xarray_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        independent().to_arviz()


def test_moments_that_do_not_exist_are_refused():
    rng = np.random.default_rng(0)
    cauchy = Draws(rng.standard_cauchy((4, 5000, 1)))
    with pytest.raises(ValueError, match=r"mean of x .* its tails are too heavy \(Pareto k = 1\.\d+, above 0\.7"):
        cauchy.mean()
    assert cauchy.mean(check=False).shape == (1,)
    assert abs(cauchy.quantile(0.5)[0]) < 0.1
    assert [check.name for check in cauchy.certify().failed] == ["tails"]
    with pytest.raises(ValueError, match=r"standard deviation of x .*above 0\.35"):
        Draws(rng.standard_t(1.5, (4, 5000, 1))).std()
    for seed in range(20):  # and those that do exist are not
        rng = np.random.default_rng(seed)
        light = [rng.normal(size=(4, 500)), rng.exponential(size=(4, 500)), rng.poisson(300.0, (4, 500)).astype(float)]
        draws = Draws(np.stack(light, axis=2))
        if draws._passes().all():
            draws.mean()
            draws.std()


def test_truth_values_are_integers_and_other_kinds_are_refused():
    values = np.random.default_rng(0).random((4, 500, 1)) < 0.3
    draws = Draws(values)
    assert draws.mean()[0] == values.mean()
    assert "pass" in str(draws.summary())
    for bad in (values * 1j, values.astype(object), values.astype(str)):
        with pytest.raises(ValueError, match="real numbers or integers"):
            Draws(bad)


def test_parts_by_something_else_than_names_and_whole_numbers():
    draws = independent(n=10)
    with pytest.raises(TypeError, match="by name"):
        draws[0]
    with pytest.raises(ValueError, match="step must be a whole number"):
        draws.thin(1.5)
    with pytest.raises(ValueError, match="whole number of draws"):
        draws.discard(1.0)


def test_names_that_clash_in_xarray_are_refused_and_gaps_are_kept():
    pytest.importorskip("xarray")
    for names in (["a", "a[0]"], ["chain", "b"], ["a_dim_0", "a[1]"]):
        with pytest.raises(ValueError, match="two things in xarray"):
            independent(names=names).to_arviz()
    assert independent(names=["a[1]", "a[4]"]).to_arviz()["posterior"]["a_dim_0"].values.tolist() == [1, 4]


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-17), (1.0, 1e-13)])
def test_agreement_does_not_depend_on_the_unit(offset, scale):
    x = np.random.default_rng(0).normal(size=(4, 500, 1)) + 2.0 * np.arange(4)[:, None, None]
    assert Draws(offset + scale * x).agreement()[0] == pytest.approx(Draws(x).agreement()[0], rel=0.02)
    assert Draws(np.full((4, 50, 1), 0.1)).agreement()[0] == 0.0
