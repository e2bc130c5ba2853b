"""Certificates: what a check says, what three units measure, and moves that keep their constraints."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lemmata.core.certificate import Certificate, Check, equi, free, gap, nonnegative, same, simplex, symmetric

EPS = np.finfo(float).eps
EXACT = 1e-12  # relative; formulas of a few operations, written in another order
FACTOR = 2.0  # how far the median of three random directions in 40 dimensions may be from the typical one


def check(name="gap", value=0.0, limit=1e-6, kind="proof", claim="a claim"):
    return Check(name, value, limit, kind, claim)


# A check and a certificate.


@pytest.mark.parametrize(
    ("value", "limit", "holds"),
    [
        (0.0, 0.0, True),
        (1.0, 1.0, True),
        (1.0 + 1e-15, 1.0, False),
        (-1.0, 0.0, True),
        (np.nan, 1.0, False),
        (np.nan, np.inf, False),
        (np.nan, np.nan, False),
        (0.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, 1e300, False),
    ],
)
def test_a_check_holds_within_its_limit_and_never_for_nan(value, limit, holds):
    one = check(value=value, limit=limit)
    assert one.holds is holds
    assert Certificate(one).holds is holds
    assert Certificate(check(), one, check()).holds is holds


def test_a_certificate_without_checks_proves_nothing():
    assert not Certificate().holds


def test_a_certificate_answers_by_name():
    a, b = check("a"), check("b", value=1.0)
    certificate = Certificate(a, b)
    assert certificate["b"] is b
    assert list(certificate) == [a, b]
    assert certificate.failed == [b]
    assert not certificate
    assert repr(certificate) == "<Certificate refused: a, b>"
    assert repr(Certificate(a)) == "<Certificate holds: a>"
    with pytest.raises(KeyError, match=r"no check 'c'; there are \['a', 'b'\]"):
        certificate["c"]


@pytest.mark.parametrize(
    ("kinds", "weakest"),
    [
        (["proof"], "proof"),
        (["proof", "local"], "local"),
        (["local", "evidence", "proof"], "evidence"),
        (["evidence", "proof"], "evidence"),
    ],
)
def test_a_certificate_is_as_strong_as_its_weakest_check(kinds, weakest):
    assert Certificate(*(check(kind=kind) for kind in kinds)).kind == weakest


def test_a_check_without_limit_is_information_only():
    assert Certificate(check(), check(kind="local", limit=np.inf)).kind == "proof"


def test_the_table_is_aligned():
    certificate = Certificate(
        check("gap", 2e-12, 1e-6, "proof", "short"),
        check("a much longer name", 1.5e-300, np.inf, "evidence", "a longer claim, with words"),
        check("x", np.nan, 0.001, "local", "neither"),
        subject="Model()",
    )
    title, head, *lines = str(certificate).splitlines()
    assert title == "Model(): certificate is refused by x"
    for column, entries in {
        "limit": ["1e-06", "inf", "1e-03"],
        "kind": ["proof", "evidence", "local"],
        "claim": ["short", "a longer claim, with words", "neither"],
    }.items():
        place = head.index(column)
        for line, entry in zip(lines, entries, strict=True):
            assert line[place : place + len(entry)] == entry
            assert line[place - 1] == " "
    signs = {line.index(sign) for line, sign in zip(lines, "≤≤>", strict=True)}
    assert len(signs) == 1
    values = [line[: signs.copy().pop()].rstrip() for line in lines]
    assert len({len(value) for value in values}) == 1  # numbers end in one column


def test_the_title_says_what_holds():
    assert str(Certificate(check())).startswith("certificate holds (proof)\n")
    assert str(Certificate(check(kind="local"), subject="M")).startswith("M: certificate holds (local)\n")


class Text(HTMLParser):
    """Collects the text of a page, and the names of its elements."""

    def __init__(self, page):
        super().__init__()
        self.words, self.elements = [], []
        self.feed(page)

    def handle_data(self, data):
        self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)


def test_html_escapes_every_text():
    hostile = "<script>alert('&amp;')</script>"
    page = Certificate(check(name=hostile, claim=hostile, value=1.0), subject=hostile)._repr_html_()
    parsed = Text(page)
    assert "script" not in parsed.elements
    text = "".join(parsed.words)
    assert text.count(hostile) == 4  # subject, the check that refuses, its name, its claim
    assert "✗" in text
    assert "✓" in "".join(Text(Certificate(check())._repr_html_()).words)


def test_html_has_a_row_for_each_check():
    parsed = Text(Certificate(check(), check(value=2.0))._repr_html_())
    assert parsed.elements.count("tr") == 3
    assert parsed.elements.count("td") == 10


def test_plain_values_go_through_json():
    certificate = Certificate(check(value=float(np.float64(1e-9))), check("b", 2.0, np.inf, "local", "µ ≤ σ"), subject="M()")
    plain = certificate.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["subject"], plain["holds"], plain["kind"]) == ("M()", True, "proof")
    assert plain["checks"][1] == {"name": "b", "value": 2.0, "limit": np.inf, "kind": "local", "claim": "µ ≤ σ", "holds": True}


# gap.


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_a_gap_is_relative_to_the_objective(unit):
    one = gap(3.0 * unit, 2.4 * unit, 10.0 * unit, "claim")
    np.testing.assert_allclose(one.value, 0.2, rtol=EXACT)
    assert (one.kind, one.limit, one.name) == ("proof", 1e-6, "gap")
    np.testing.assert_allclose(gap(-3.0 * unit, -3.6 * unit, 0.0, "claim").value, 0.2, rtol=EXACT)


def test_a_gap_near_zero_is_relative_to_the_null_model():
    np.testing.assert_allclose(gap(0.0, -1e-9, 100.0, "claim").value, 1e-9 / (np.sqrt(EPS) * 100), rtol=EXACT)
    assert gap(0.0, 0.0, 0.0, "claim").value == 0.0
    assert not gap(1e-9, 0.0, 0.0, "claim").holds
    assert not gap(np.nan, 0.0, 1.0, "claim").holds
    assert not gap(1.0, -np.inf, 1.0, "claim").holds


# same.


@given(size=st.floats(1e-12, 1.0), seed=st.integers(0, 100), shape=st.sampled_from([(), (5,), (3, 4), (2, 3, 4)]))
def test_same_is_the_relative_distance(size, seed, shape):
    rng = np.random.default_rng(seed)
    B = np.asarray(rng.standard_normal(shape)) + 2.0
    U = np.asarray(rng.standard_normal(shape))
    moved = B + size * np.linalg.norm(B.ravel()) / np.linalg.norm(U.ravel()) * U
    found = same(moved, B, "name", "claim")
    np.testing.assert_allclose(found.value, size, rtol=1e-2 if size < 1e-10 else 1e-4)  # B + δ keeps 16 digits of B
    assert found.holds == (found.value <= 1e-6)


def test_same_refuses_what_cannot_be_compared():
    B = np.array([1.0, np.nan, 3.0])
    assert same(B, B, "name", "claim").value == 0.0
    for other in (np.array([1.0, 2.0, 3.0]), np.array([np.nan, 1.0, 3.0]), B[:2], B[None]):
        assert not same(other, B, "name", "claim").holds
        assert not same(B, other, "name", "claim").holds


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_same_refuses_infinity_for_a_number(bad):
    with np.errstate(all="ignore"):
        assert not same([1.0, bad], [1.0, 2.0], "name", "claim").holds
        assert not same([1.0, 2.0], [1.0, bad], "name", "claim").holds


def test_same_has_a_floor():
    assert not same(1e-9, 0.0, "name", "claim").holds
    assert not same(1e-9, 0.0, "name", "claim", floor=1e-4).holds
    assert same(1e-9, 0.0, "name", "claim", floor=1e-2).holds
    assert same(0.0, 0.0, "name", "claim").holds


# equi.


def linear(seed, n=40):
    """A linear residual H (a − a*), whose Jacobian is H, and a solution a* of mixed signs and sizes."""
    rng = np.random.default_rng(seed)
    H, solution = rng.standard_normal((n, n)), 10.0 * rng.standard_normal(n) + 3.0
    return H, solution, rng.standard_normal(n)


def moved(solution, direction, size):
    return solution + size * np.linalg.norm(solution) / np.linalg.norm(direction) * direction


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2, 0.1])
def test_equi_reads_the_size_of_the_error(seed, size):
    H, solution, direction = linear(seed)
    found = equi(lambda a: H @ (a - solution), moved(solution, direction, size), "a", "claim")
    assert size / FACTOR < found.value < size * FACTOR
    assert found.holds == (found.value <= 1e-3)
    assert (found.kind, found.limit) == ("local", 1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_equi_equals_its_closed_form(seed):
    """For a random unit u, E‖Hu‖² = ‖H‖²/n, so equi is ‖g‖ √n / (‖H‖ ‖a‖) but for the chance of three directions."""
    H, solution, direction = linear(seed)
    a = moved(solution, direction, 0.01)
    g = H @ (a - solution)
    expected = np.linalg.norm(g) * np.sqrt(len(a)) / (np.linalg.norm(H) * np.linalg.norm(a))
    assert expected / FACTOR < equi(lambda a: H @ (a - solution), a, "a", "claim").value < expected * FACTOR


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", [1e-8, 3.7, 1e8])
def test_equi_knows_no_units(seed, unit):
    H, solution, direction = linear(seed)
    a = moved(solution, direction, 0.01)
    plain = equi(lambda a: H @ (a - solution), a, "a", "claim").value
    of_parameter = equi(lambda b: H @ (b / unit - solution), a * unit, "a", "claim").value
    of_residual = equi(lambda a: unit * (H @ (a - solution)), a, "a", "claim").value
    np.testing.assert_allclose([of_parameter, of_residual], plain, rtol=1e-9)  # differences of numbers of like size


def test_equi_is_deterministic_and_zero_at_the_solution():
    H, solution, direction = linear(0)
    a = moved(solution, direction, 0.01)
    first, second = (equi(lambda a: H @ (a - solution), a, "a", "claim", kind="proof") for _ in range(2))
    assert first == second
    assert first.kind == "proof"
    assert equi(lambda a: H @ (a - solution), solution, "a", "claim").value == 0.0


def test_equi_refuses_nan_and_a_residual_that_nothing_moves():
    assert not equi(lambda a: np.full(3, np.nan), np.ones(3), "a", "claim").holds
    assert not equi(lambda a: np.ones(3), np.ones(3), "a", "claim").holds


def test_equi_moves_within_the_constraints():
    seen = []
    p = np.array([0.2, 0.3, 0.5])

    def residual(q):
        seen.append(q)
        return q - p

    equi(residual, p, "p", "claim", move=simplex)
    assert len(seen) == 4
    for q in seen[1:]:
        np.testing.assert_allclose(q.sum(), 1.0, rtol=EXACT)
        assert not np.array_equal(q, p)


# Moves.


def distance(b, a):
    return np.linalg.norm((b - a).ravel()) / np.linalg.norm(a.ravel())


@pytest.mark.parametrize("shape", [(4,), (3, 3), (2, 3, 3)])
@pytest.mark.parametrize("size", [0.01, 0.2])
def test_moves_have_the_size_they_say_and_keep_their_constraints(shape, size):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape) - 5.0
    np.testing.assert_allclose(distance(free(a, rng, size), a), size, rtol=EXACT)
    assert np.min(nonnegative(np.abs(a), rng, size)) >= 0
    assert np.min(nonnegative(np.zeros(shape) + np.eye(1, shape[-1])[0], rng, size)) >= 0  # zeros go to positive numbers
    p = rng.dirichlet(np.full(shape[-1], 0.1), size=shape[:-1])
    q = simplex(p, rng, size)
    assert np.min(q) >= 0
    np.testing.assert_allclose(q.sum(axis=-1), 1.0, rtol=EXACT)
    assert size / 4 < distance(q, p) < 2 * size  # reflecting and scaling change the length of a move
    if len(shape) > 1:
        S = a + np.swapaxes(a, -1, -2)
        moved_S = symmetric(S, rng, size)
        np.testing.assert_array_equal(moved_S, np.swapaxes(moved_S, -1, -2))
        np.testing.assert_allclose(distance(moved_S, S), size, rtol=EXACT)


def test_moves_go_in_a_new_direction_each_time():
    rng, a = np.random.default_rng(0), np.arange(1.0, 40.0)
    u, v = free(a, rng) - a, free(a, rng) - a
    cosine = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
    assert abs(cosine) < 0.8  # 39 dimensions: 0.8 is five standard deviations of 1/√39


def test_nothing_cannot_be_moved_by_a_share_of_itself():
    np.testing.assert_array_equal(free(np.zeros(3), np.random.default_rng(0)), np.zeros(3))
