"""A supermarket's 4,627 baskets: the same sets and rules as counting columns, for supports at which that can be done."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from association.naive import by_set
from lemmata.association import Apriori, association_rules


@pytest.fixture(scope="module")
def supermarket():
    kept = np.load(Path(__file__).parents[1] / "reference" / "supermarket.npz")
    table = np.unpackbits(kept["bits"], axis=1, count=len(kept["names"])).astype(bool)
    assert table.shape == (4627, 217)
    return table, kept["names"]


def columns_counted(table, minimum):
    """Count sets by whole columns: each level tries every frequent item on every set of the last, and prunes nothing else."""
    singles = [j for j in range(table.shape[1]) if table[:, j].sum() >= minimum]
    found, level = {}, {(j,): table[:, j] for j in singles}
    while level:
        found |= {frozenset(items): int(rows.sum()) for items, rows in level.items()}
        larger = {}
        for items, rows in level.items():
            for j in singles:
                if j > items[-1] and (both := rows & table[:, j]).sum() >= minimum:
                    larger[(*items, j)] = both
        level = larger
    return found


@pytest.mark.item("ASC-04", "ASC-05")
@pytest.mark.parametrize("algorithm", ["depth", "levels"])
def test_the_same_sets_and_rules_as_counting_columns(supermarket, algorithm):
    table, _ = supermarket
    model = Apriori(0.15, algorithm=algorithm).fit(table)
    expected = columns_counted(table, int(np.ceil(0.15 * 4627)))
    assert by_set(model.itemsets_) == expected
    assert len(expected) > 500
    certificate = model.certify(table)
    assert certificate.holds
    assert certificate.kind == "proof"
    found = model.rules(min_confidence=0.7)
    rules = {}
    for whole, count in expected.items():
        for k in range(1, len(whole)):
            for left in map(frozenset, combinations(whole, k)):
                if count / expected[left] >= 0.7:
                    rules[left, whole - left] = count / expected[left], count / expected[left] / (expected[whole - left] / 4627)
    sides = list(zip(found["antecedent"], found["consequent"], strict=True))
    assert dict(zip(sides, zip(found["confidence"], found["lift"], strict=True), strict=True)).keys() == rules.keys()
    for i, rule in enumerate(sides):
        assert (found["confidence"][i], found["lift"][i]) == pytest.approx(rules[rule], rel=1e-12)


def test_the_best_known_rule_of_this_table(supermarket):
    """Weka's manual shows these numbers: of 788 baskets with biscuits, frozen foods, fruit and a high total 723 hold bread."""
    table, names = supermarket
    places = {name: j for j, name in enumerate(names.tolist())}
    left = {places[name] for name in ("biscuits", "frozen foods", "fruit", "total")}
    found = association_rules(table, min_support=0.1, min_confidence=0.9, max_consequent=1)
    at = list(zip(found["antecedent"], found["consequent"], strict=True)).index((left, {places["bread and cake"]}))
    assert found["count"][at] == 723
    assert round(723 / found["confidence"][at]) == 788
