"""`MarkovRanker`: the construction by fractions, doubts by derivatives and by drawing games again, links between teams."""

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import lemmata
from lemmata.core.certificate import free
from lemmata.markov import MarkovRanker
from lemmata.markov.games import chain_of, gather, number_teams, read_games
from markov import exact

GAMES = [
    ("ants", "bees", 3, 1),
    ("bees", "crabs", 2, 2),
    ("crabs", "ants", 0, 1),
    ("bees", "ants", 2, 1),
    ("crabs", "bees", 0, 0),
]


def season(seed=0, n=8, games=150, spread=1.0):
    """Draw games: rows (team, team, score, score), stronger teams with smaller numbers."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(spread, -spread, n)
    i, j = rng.integers(n, size=(2, games))
    i, j = i[i != j], j[i != j]
    mean = np.exp(0.7 + 0.5 * (strength[i] - strength[j]))
    return np.column_stack([i, j, rng.poisson(mean), rng.poisson(np.exp(1.4) / mean)])


def exact_scores(games):
    """Build the chain of the catalogue, a game at a time, in fractions."""
    teams = sorted({name for game in games for name in game[:2]})
    M = [[Fraction(0)] * len(teams) for _ in teams]
    for first, second, one, other in games:
        i, j = teams.index(first), teams.index(second)
        if one < other:
            i, j, one, other = j, i, other, one
        share = Fraction(int(one), int(one + other)) if one + other else Fraction(1, 2)
        won = 1 if one > other else Fraction(1, 2)
        M[j][i] += won + share
        M[i][i] += won + share
        M[i][j] += (1 - won) + (1 - share)
        M[j][j] += (1 - won) + (1 - share)
    return teams, exact.law([[v / sum(row) for v in row] for row in M])


@pytest.mark.item("SEQ-04")
@pytest.mark.parametrize("games", [GAMES, *[season(seed, n=5, games=30).tolist() for seed in range(3)]])
def test_ratings_are_the_law_of_the_walk_to_the_winners(games):
    teams, truth = exact_scores(games)
    model = MarkovRanker().fit(games)
    assert model.teams_.tolist() == teams
    np.testing.assert_allclose(model.scores_, [float(v) for v in truth], rtol=1e-13)
    assert model.ranking_.tolist() == sorted(teams, key=lambda name: -model.scores_[teams.index(name)])
    certificate = model.certify(games)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"


@pytest.mark.item("SEQ-04")
@pytest.mark.parametrize("seed", range(8))
def test_a_team_that_beats_all_others_ranks_first(seed):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(8, 1)  # everyone meets everyone
    games = np.column_stack([i, j, rng.poisson(3, len(i)), rng.poisson(3, len(i))])
    games[:7, 2:] = [2 + seed, 1]  # and 0 beats them all
    model = MarkovRanker().fit(games)
    assert model.ranking_[0] == 0
    games[:7, 2:] = [1, 0]
    assert MarkovRanker(prior=0.5).fit(games).ranking_[0] == 0


def test_forms_of_games_agree():
    games = season(3)
    reference = MarkovRanker().fit(games)
    frame = pd.DataFrame(games, columns=["home", "away", "goals", "against"])
    names = np.array([f"t{k}" for k in range(8)])
    labeled = frame.assign(home=names[games[:, 0]], away=names[games[:, 1]])
    turned = games[:, [1, 0, 3, 2]]
    for X, y in (
        (games.tolist(), None),
        (games.astype(float), None),
        (games[:, :2], games[:, 2:]),
        (frame, None),
        (labeled, None),
        (pl.from_pandas(labeled), None),
        (labeled.to_numpy(), None),
        (labeled[["home", "away"]], games[:, 2:]),
        (turned, None),
        (np.random.default_rng(0).permutation(games), None),
    ):
        model = MarkovRanker().fit(X, y)
        np.testing.assert_allclose(model.scores_, reference.scores_, rtol=1e-12)
        np.testing.assert_allclose(model.standard_errors_, reference.standard_errors_, rtol=1e-9)
        assert model.certify(X, y).holds
    won = np.sign(games[:, 2] - games[:, 3]) / 2 + 0.5
    by_result = MarkovRanker().fit(games[:, :2], won)
    pairs = [(a, b) if w == 1 else (b, a) for a, b, w in zip(*games[:, :2].T, won, strict=True) if w != 0.5]
    only_won = MarkovRanker().fit(pairs)
    np.testing.assert_allclose(only_won.scores_, MarkovRanker().fit(games[won != 0.5, :2], won[won != 0.5]).scores_, rtol=1e-12)
    assert by_result.certify(games[:, :2], won).holds


def test_weights_mean_repetition_and_missing_scores_no_game():
    games = season(1)
    weight = np.random.default_rng(0).integers(0, 4, len(games)).astype(float)
    weighted = MarkovRanker().fit(games, sample_weight=weight)
    repeated = MarkovRanker().fit(np.repeat(games, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, rtol=1e-12)
    np.testing.assert_allclose(weighted.standard_errors_, repeated.standard_errors_, rtol=1e-9)
    assert weighted.certify(games, sample_weight=weight).holds
    assert not weighted.certify(games).holds
    holes = np.where(weight[:, None] == 0, [[1, 1, np.nan, np.nan]], 1.0) * games
    np.testing.assert_allclose(MarkovRanker().fit(holes).scores_, MarkovRanker().fit(games[weight > 0]).scores_, rtol=1e-12)


@pytest.mark.parametrize("prior", [0.0, 2.0])
def test_standard_errors_are_the_infinitesimal_jackknife(prior):
    games, step = season(2, games=60), 1e-6
    model, total = MarkovRanker(prior=prior).fit(games), 0.0
    for g in range(len(games)):
        weight = np.ones(len(games))
        weight[g] += step
        up = MarkovRanker(prior=prior).fit(games, sample_weight=weight).scores_
        weight[g] -= 2 * step
        down = MarkovRanker(prior=prior).fit(games, sample_weight=weight).scores_
        total = total + ((up - down) / (2 * step)) ** 2
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(total), rtol=1e-6)


def test_standard_errors_are_those_of_games_drawn_again():
    games, rng = season(4, games=800), np.random.default_rng(0)
    model = MarkovRanker().fit(games)
    drawn = [
        MarkovRanker().fit(games, sample_weight=rng.multinomial(len(games), np.full(len(games), 1 / len(games))))
        for _ in range(300)
    ]
    np.testing.assert_allclose(model.standard_errors_, np.std([m.scores_ for m in drawn], axis=0), rtol=0.2)


@pytest.mark.slow_without_jit
def test_intervals_cover():
    seasons = [MarkovRanker().fit(season(100 + s, games=300)) for s in range(200)]
    teams, pairs = np.arange(8), season(0, games=400_000)
    truth = MarkovRanker().fit(pairs).scores_
    covered, joint = 0.0, 0
    rank = np.argsort(np.argsort(-truth)) + 1
    for model in seasons:
        assert model.teams_.tolist() == teams.tolist()
        found = model.intervals(0.9)
        assert (found.low < model.scores_).all()
        assert (model.scores_ < found.high).all()
        covered += ((found.low <= truth) & (truth <= found.high)).mean() / len(seasons)
        joint += bool(((found.best <= rank) & (rank <= found.worst)).all())
    assert 0.85 < covered < 0.95
    assert joint / len(seasons) > 0.9


def test_ranks_are_counted():
    model = MarkovRanker().fit(season(5, games=400))
    found = model.intervals(0.8)
    wide = model.scores_ * np.exp(np.outer([-1, 1], model.standard_errors_ / model.scores_) * 2.2)  # about the joint level
    assert (found.best <= np.argsort(np.argsort(-model.scores_)) + 1).all()
    assert (found.worst >= np.argsort(np.argsort(-model.scores_)) + 1).all()
    better = (wide[0][None, :] > wide[1][:, None]).sum(axis=1)
    np.testing.assert_allclose(found.best, 1 + better, atol=1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.intervals(1.5)


def test_teams_that_never_met_are_listed():
    apart = [*GAMES, ("moles", "newts", 2, 1), ("newts", "moles", 1, 1)]
    with pytest.raises(ValueError, match=r"2 groups that never met: \[ants, bees, crabs\]; \[moles, newts\].*prior > 0"):
        MarkovRanker().fit(apart)
    model = MarkovRanker(prior=0.5).fit(apart)
    assert model.certify(apart).holds, str(model.certify(apart))
    # Each group has the shares among its own that it would have alone.
    alone = MarkovRanker(prior=0.5).fit(apart[-2:]).scores_
    np.testing.assert_allclose(model.scores_[3:] / model.scores_[3:].sum(), alone, rtol=1e-12)


def test_an_unbeaten_team_is_named():
    with pytest.raises(ValueError, match=r"\[ants\] never lost a point to the others: .*Take prior > 0"):
        MarkovRanker().fit([("ants", "bees"), ("bees", "crabs"), ("crabs", "bees")])
    with pytest.raises(ValueError, match="1 more groups"):
        MarkovRanker().fit([("ants", "bees"), ("dogs", "bees")])
    model = MarkovRanker(prior=1.0).fit([("ants", "bees"), ("bees", "crabs"), ("crabs", "bees")])
    assert model.ranking_[0] == "ants"


def test_a_large_prior_makes_all_equal():
    spread = [np.ptp(MarkovRanker(prior=prior).fit(season(6)).scores_) for prior in (0.0, 1.0, 10.0, 1e4)]
    assert (np.diff(spread) < 0).all()
    assert spread[-1] < 1e-3


@pytest.mark.parametrize("prior", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_sabotage_is_refused(seed, prior):
    games, rng = season(seed), np.random.default_rng(seed)
    model = MarkovRanker(prior=prior).fit(games)
    for name in ("scores_", "standard_errors_"):
        for _ in range(5):
            twin = deepcopy(model)
            setattr(twin, name, free(getattr(model, name), rng))
            assert not twin.certify(games).holds, name
    twin = deepcopy(model)
    twin.transition_.data[:] = free(twin.transition_.data, rng)
    assert not twin.certify(games).holds
    for name in ("ranking_", "teams_"):
        twin = deepcopy(model)
        changed = getattr(model, name).copy()
        changed[0] += 1
        setattr(twin, name, changed)
        assert not twin.certify(games).holds, name
    twin = deepcopy(model)
    twin.ranking_ = twin.ranking_[::-1].copy()
    assert [check.name for check in twin.certify(games).failed] == ["ranking"]
    assert not model.certify(season(seed + 50)).holds


def test_save_load_clone_and_discovery(tmp_path):
    model = MarkovRanker(prior=1.0).fit(GAMES)
    model.save(tmp_path / "ranking")
    again = lemmata.load(tmp_path / "ranking")
    assert np.array_equal(again.scores_, model.scores_)
    assert again.ranking_.tolist() == model.ranking_.tolist()
    assert again.certify(GAMES).to_dict() == model.certify(GAMES).to_dict()
    assert clone(model).get_params() == {"prior": 1.0}
    assert dict(lemmata.all_estimators())["MarkovRanker"] is MarkovRanker
    assert not get_tags(MarkovRanker()).input_tags.two_d_array


@pytest.mark.slow_without_jit
def test_thousands_of_teams_are_gathered_as_a_few_are():
    rng, n = np.random.default_rng(0), 4000
    i, j = rng.integers(n, size=(2, 200_000))
    games = np.column_stack([i, j, rng.poisson(2.0, 200_000), rng.poisson(2.0, 200_000)])[i != j]
    model = MarkovRanker().fit(games)
    assert np.isnan(model.standard_errors_).all()
    with pytest.raises(ValueError, match="up to 3,000 teams"):
        model.intervals()
    certificate = model.certify(games)
    assert certificate.holds, str(certificate)
    M = np.zeros((n, n), dtype=np.float64)
    first, second, one, other = games.T
    earned = np.sign(one - other) / 2 + 0.5 + np.where(one + other > 0, one / np.maximum(one + other, 1), 0.5)
    for row, column, value in (
        (second, first, earned),
        (first, first, earned),
        (first, second, 2 - earned),
        (second, second, 2 - earned),
    ):
        np.add.at(M, (row, column), value)
    np.testing.assert_allclose(model.transition_.toarray(), M / M.sum(axis=1, keepdims=True), rtol=1e-12)


def test_rows_of_odds_sum_to_twice_the_games():
    first, second, one, other = read_games(GAMES, None)
    teams, i, j = number_teams(first, second)
    pairs = gather(i, j, one, other, None, len(teams))
    P, totals = chain_of(pairs, len(teams))
    np.testing.assert_allclose(totals, 2 * np.bincount(np.r_[i, j]))
    np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([("a", "b", 1)], None, "got 3 columns"),
        ([("a", "b", 1, 0)], [1.0], "beside a y"),
        ([("a", "b")], [[1.0, 2.0, 3.0]], "one result or two scores"),
        ([("a", "b", -1, 0)], None, "negative score"),
        ([("a", "b")], [2.0], "from 0 \\(lost\\) to 1"),
        ([("a", "b", np.inf, 0)], None, "infinite"),
        ([("a", "a", 1, 0)], None, "against itself"),
        ([("a", "b", np.nan, 0)], None, "no game with scores"),
        ([("a", "b"), ("a",)], None, "equal length"),
        (np.zeros(3), None, "1 axes"),
        ([], None, "0 columns"),
        (np.array([["a", 1], [2, "b"]], dtype=object), None, "all of them alike"),
    ],
)
def test_errors_say_what_is_wrong(X, y, message):
    with pytest.raises(ValueError, match=message):
        MarkovRanker().fit(X, y)
