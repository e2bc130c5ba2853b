"""Rules: against all ways to cut all sets, exact arithmetic for p-values, SciPy's adjustments, no basket counted again."""

from fractions import Fraction
from math import comb

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2, chi2_contingency, false_discovery_control

from association.naive import frequent_sets, rules, sets_of, table
from lemmata.association import Apriori, association_rules, frequent_itemsets
from lemmata.association import rules as rules_module
from lemmata.association.significance import adjusted, chi_squared, fisher

FIVE = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]


def measures(found, rule):
    """Give the measures of one rule by name."""
    at = [i for i, sides in enumerate(zip(found["antecedent"], found["consequent"], strict=True)) if sides == rule]
    return {name: found[name][at[0]] for name in found}


@pytest.mark.item("ASC-02")
def test_the_catalogues_example():
    found = measures(association_rules(FIVE, min_support=0.4, min_confidence=0.0), ({"a"}, {"b"}))
    assert found["support"] == pytest.approx(0.6, abs=1e-15)
    assert found["confidence"] == pytest.approx(0.75, abs=1e-15)
    assert found["lift"] == pytest.approx(0.9375, abs=1e-15)
    assert found["leverage"] == pytest.approx(0.6 - 0.64, abs=1e-15)
    assert found["conviction"] == pytest.approx(0.2 / 0.25, abs=1e-14)


@pytest.mark.item("ASC-02")
def test_lift_is_symmetric_and_one_under_independence():
    T = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 5, dtype=bool)
    found = association_rules(T, min_support=0.1, min_confidence=0.0)
    assert found["lift"].tolist() == [1.0, 1.0]
    any_table = association_rules(table(1), min_support=0.1, min_confidence=0.0)
    lift = dict(zip(zip(any_table["antecedent"], any_table["consequent"], strict=True), any_table["lift"], strict=True))
    singles = {chosen: n / 60 for chosen, n in frequent_sets(sets_of(table(1)), 6).items()}
    for (left, right), value in lift.items():
        assert value == pytest.approx(lift[right, left], rel=1e-14)
        confidence = singles[left | right] / singles[left]
        assert confidence == pytest.approx(value * singles[right], rel=1e-14)


@pytest.mark.item("ASC-05")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("confidence", [0.0, 0.4, 0.8, 1.0])
def test_all_ways_to_cut_all_sets(seed, confidence):
    T = table(seed)
    itemsets = frequent_itemsets(T, 0.05)
    found = association_rules(itemsets, min_confidence=confidence)  # from the sets alone: there is no basket to count
    sides = list(zip(found["antecedent"], found["consequent"], strict=True))
    assert len(set(sides)) == len(sides)
    expected = rules(frequent_sets(sets_of(T), 3), confidence)
    assert dict(zip(sides, found["confidence"], strict=True)) == pytest.approx(expected, rel=1e-14)
    for (left, right), count in zip(sides, found["count"], strict=True):  # supports looked up equal recounted
        assert count == sum((left | right) <= basket for basket in sets_of(T))


@pytest.mark.item("ASC-02")
@pytest.mark.parametrize("seed", range(3))
def test_measures_are_rounded_once(seed):
    """3 / 4 is 0.75, and independent items have a lift of 1, though 0.6 / 0.8 in binary is less than 0.75."""
    T, n = table(seed, n=70), 70
    found = association_rules(T, min_support=0.05, min_confidence=0.0)
    counts = frequent_sets(sets_of(T), 3)
    assert len(found) > 20
    for i, (left, right) in enumerate(zip(found["antecedent"], found["consequent"], strict=True)):
        both, one, other = Fraction(counts[left | right], n), Fraction(counts[left], n), Fraction(counts[right], n)
        exact = both, both / one, both / (one * other), both - one * other
        names = "support", "confidence", "lift", "leverage"
        assert [found[name][i] for name in names] == [float(value) for value in exact]
        conviction = float((1 - other) / (1 - both / one)) if both < one else np.inf
        assert found["conviction"][i] == conviction


def test_more_rules_than_memory_are_said(tmp_path):
    baskets = [range(12)] * 2 + [[20, i] for i in range(30, 60)]  # 3¹² rules of a set of 12 items
    with pytest.raises(MemoryError, match=r"more than 1,000 rules, .* set min_lift, max_consequent=1 .* to="):
        Apriori(2, memory_limit=80 * 5000).fit(baskets).set_params(memory_limit=80 * 1000).rules()
    with pytest.raises(MemoryError, match="more than 5,000 rules"):
        association_rules(baskets, min_support=2, memory_limit=80 * 5000)
    with pytest.raises(MemoryError, match="More than 1,000 sets"):
        association_rules(baskets, min_support=2, memory_limit=80 * 1000)
    path = association_rules(baskets, min_support=2, memory_limit=80 * 5000, to=tmp_path / "rules.parquet")
    assert pq.read_table(path).num_rows == 3**12 - 2 * 2**12 + 1
    few = association_rules(baskets, min_support=2, max_consequent=1, max_length=2, memory_limit=80 * 5000)
    assert len(few) == 12 * 11


def test_rules_do_not_depend_on_how_sets_are_dealt_out(tmp_path, monkeypatch, capsys):
    itemsets = frequent_itemsets(table(3, n=100), 0.03)
    whole = association_rules(itemsets, min_confidence=0.2)
    monkeypatch.setattr(rules_module, "CUTS", 10)
    parts = association_rules(itemsets, min_confidence=0.2)
    assert np.array_equal(whole.rows, parts.rows)
    assert not capsys.readouterr().err
    path = association_rules(itemsets, min_confidence=0.2, to=tmp_path / "rules.parquet", verbose=1)
    assert pq.read_table(path).equals(whole.to_arrow())
    assert "rules: 100%" in capsys.readouterr().err


def test_a_file_of_rules_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "rules.parquet"
    association_rules(FIVE, min_support=0.4, min_confidence=0.0, to=path)
    before = path.read_bytes()

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rules_module, "cut", interrupted)
    with pytest.raises(KeyboardInterrupt):
        association_rules(FIVE, min_support=0.2, min_confidence=0.0, to=path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["rules.parquet"]


def test_thresholds():
    T = table(2)
    everything = association_rules(T, min_support=0.05, min_confidence=0.3)
    lifted = association_rules(T, min_support=0.05, min_confidence=0.3, min_lift=1.2)
    assert len(lifted) == (everything["lift"] >= 1.2 * (1 - 1e-12)).sum() > 0
    short = association_rules(T, min_support=0.05, min_confidence=0.3, max_consequent=1)
    assert len(short) == sum(len(side) == 1 for side in everything["consequent"])
    sets = frequent_itemsets(T, 0.05)["itemset"].tolist()
    assert everything.n_tests == sum(a != b for a in sets for b in sets)
    assert short.n_tests == sum(a != b for a in sets for b in sets if len(b) == 1)
    pairs = association_rules(T, min_support=0.05, max_length=2)
    assert pairs.n_tests == sum(len(s) == 1 for s in sets) * (sum(len(s) == 1 for s in sets) - 1)
    never = association_rules([["a", "b"], ["a", "b"], ["c"]], min_confidence=1.0)
    assert np.isinf(never["conviction"]).all()


def exact_tail(x, a, b, n):
    """P(X ≥ x) in fractions."""
    return Fraction(sum(comb(a, k) * comb(n - a, b - k) for k in range(x, min(a, b) + 1)), comb(n, b))


@pytest.mark.parametrize("seed", range(3))
def test_fishers_p_values_are_exact(seed):
    rng = np.random.default_rng(seed)
    cases, expected = [], []
    for n in (2, 10, 47, 300, 2000):
        for _ in range(40):
            a, b = rng.integers(0, n + 1, 2).tolist()
            x = int(rng.integers(max(0, a + b - n), min(a, b) + 1))
            if (p := exact_tail(x, a, b, n)) > 1e-290:
                cases.append((x, a, b, n))
                expected.append(float(p))
    x, a, b, n = np.array(cases, dtype=float).T
    p = np.concatenate([fisher(x[n == k], a[n == k], b[n == k], k) for k in np.unique(n)])
    # 1e-12: Loader's densities are good to 1e-14, and up to a thousand terms are added
    np.testing.assert_allclose(p, np.array(expected)[np.argsort(n, kind="stable")], rtol=1e-12)


def test_the_lady_tasting_tea_and_the_chi_squared_of_a_table():
    assert fisher(np.array([3.0]), np.array([4.0]), np.array([4.0]), 8.0)[0] == pytest.approx(17 / 70, rel=1e-14)
    for counts in ([[3, 1], [1, 3]], [[30, 12], [7, 51]], [[5, 0], [0, 5]]):
        (x, y), (z, w) = counts
        one = chi_squared(*(np.array([float(v)]) for v in (x, x + y, x + z)), float(x + y + z + w))[0]
        assert one == pytest.approx(chi2_contingency(counts, correction=False).pvalue, rel=1e-10)


def test_adjusted_p_values():
    p = np.random.default_rng(0).random(30) ** 3
    np.testing.assert_allclose(adjusted(p, 30, "bh"), false_discovery_control(p), rtol=1e-13)
    np.testing.assert_allclose(adjusted(p, 30, "by"), false_discovery_control(p, method="by"), rtol=1e-13)
    assert np.array_equal(adjusted(p, 30, "bonferroni"), np.minimum(30 * p, 1))
    order = np.argsort(p)
    holm = [max(min((30 - j) * p[order[j]], 1) for j in range(i + 1)) for i in range(30)]
    np.testing.assert_allclose(adjusted(p, 30, "holm")[order], holm, rtol=1e-14)
    for correction in ("bonferroni", "holm", "bh", "by"):  # those left out count as 1
        whole = adjusted(np.append(p, np.ones(70)), 100, correction)
        np.testing.assert_allclose(adjusted(p, 100, correction), whole[:30], rtol=1e-14)


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "by"])
def test_independent_items_have_hardly_a_significant_rule(correction):
    """Without any association a rule is false: in 200 tables at alpha = 5 % fewer than 20 may have one (p = 0.001 at 5 %)."""
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        T = rng.random((200, 8)) < 0.4
        found = association_rules(T, min_support=0.05, min_confidence=0.0, test="fisher", correction=correction, alpha=0.05)
        false += len(found) > 0
    assert false < 20


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_pairs_that_are_frequent_by_chance_are_not_significant(correction):
    """Of 300 rare items some 45,000 pairs could meet, and those that meet most often are the ones that are reported."""
    false = 0
    for seed in range(40):
        T = np.random.default_rng(seed).random((400, 300)) < 0.05
        found = association_rules(T, min_support=6, min_confidence=0.0, test="fisher", correction=correction, alpha=0.05)
        false += len(found) > 0
    assert false <= 7  # of 40 at 5 % more would be seen once in 500 times


def test_rules_that_are_written_are_the_rules(tmp_path):
    T = table(4, n=200, p=12)
    options = {"min_support": 0.02, "min_confidence": 0.3, "test": "fisher", "correction": "bonferroni", "alpha": 1.0}
    path = association_rules(T, to=tmp_path / "rules.parquet", **options)
    expected = association_rules(T, **options)
    assert len(expected) > 100
    assert pq.read_table(path).equals(expected.to_arrow())
    assert [p.name for p in tmp_path.iterdir()] == ["rules.parquet"]
    with pytest.raises(ValueError, match="ranks all rules"):
        association_rules(T, to=path, **(options | {"correction": "bh"}))


def test_no_rule_is_a_frame_too(tmp_path):
    nothing = association_rules([["a"], ["b"]], test="fisher", correction="bh")
    assert len(nothing) == 0
    assert nothing.to_pandas().shape == (0, 10)
    path = association_rules([["a"], ["b"]], to=tmp_path / "none.parquet")
    assert pq.read_table(path).num_rows == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"min_confidence": 1.2}, "min_confidence"),
        ({"min_lift": -1}, "min_lift"),
        ({"max_consequent": 0}, "max_consequent"),
        ({"test": "t"}, "test must be"),
        ({"test": "fisher", "correction": "none"}, "correction must be"),
        ({"correction": "holm"}, "choose test"),
        ({"test": "chi2", "alpha": 2}, "alpha"),
        ({"min_confidence": "0.5"}, "min_confidence"),
        ({"min_lift": "2"}, "min_lift"),
        ({"test": ["fisher"]}, "test must be"),
        ({"test": "chi2", "alpha": "0.05"}, "alpha"),
        ({"memory_limit": 0}, "memory_limit"),
    ],
)
def test_bad_thresholds_get_a_clear_sentence(options, told):
    with pytest.raises(ValueError, match=told):
        association_rules(FIVE, **options)
    with pytest.raises(ValueError, match=told):
        association_rules(frequent_itemsets(FIVE, 0.4), **options)


def test_sets_that_were_found_already_take_no_thresholds_of_baskets():
    found = frequent_itemsets(FIVE, 0.4)
    with pytest.raises(ValueError, match="found already"):
        association_rules(found, min_support=0.9)
    for frame in (found.to_pandas(), found.to_polars(), found.to_arrow()):
        with pytest.raises(ValueError, match="before to_pandas"):
            association_rules(frame)
    with pytest.raises(ValueError, match="got Apriori"):
        association_rules(Apriori(0.4).fit(FIVE))


@pytest.mark.parametrize("confidence", [0.0, 0.9])
def test_sets_of_which_a_subset_was_left_out_make_no_rules(confidence, tmp_path):
    found = frequent_itemsets(FIVE, 0.4)
    some = found.take([items != {"b", "c"} for items in found["itemset"]])  # {a, b}, {a, c} and {a, b, c} are there
    for to in (None, tmp_path / "rules.parquet"):
        with pytest.raises(ValueError, match="not all frequent sets"):
            association_rules(some, min_confidence=confidence, to=to)
    assert len(association_rules(found.take(found.length < 3), min_confidence=0.0)) == 6


def test_rows_of_rules():
    rules = association_rules(FIVE, min_support=0.4, min_confidence=0.0)
    assert len(rules.take([])) == 0
    assert rules[1:3]["count"].tolist() == rules["count"][1:3].tolist()
    assert len(rules[rules["lift"] < 1]) == (rules["lift"] < 1).sum()
    with pytest.raises(ValueError, match="holds sets"):
        rules.sort("antecedent")
    with pytest.raises(KeyError, match="there are antecedent"):
        rules["lft"]


def test_weights_that_are_not_whole_have_no_exact_test():
    model = Apriori(0.2).fit(FIVE, sample_weight=[0.5, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="chi2"):
        model.rules(test="fisher")
    assert (model.rules(min_confidence=0.5, test="chi2")["p_value"] > 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-100, 1e100, 1e300])
def test_large_weights_have_a_p_value(unit):
    thrice = Apriori(0.2).fit(FIVE, sample_weight=np.full(5, 3.5)).rules(min_confidence=0, test="chi2")
    rules = Apriori(0.2).fit(FIVE, sample_weight=np.full(5, unit)).rules(min_confidence=0, test="chi2")
    statistic = chi2.isf(thrice.p_value, 1) / 17.5  # of one basket
    np.testing.assert_allclose(rules.p_value, chi2.sf(np.minimum(statistic * 5 * unit, 1e300), 1), rtol=1e-9)


def test_a_file_of_rules_needs_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        association_rules(FIVE, to=tmp_path / "none" / "rules.parquet")
