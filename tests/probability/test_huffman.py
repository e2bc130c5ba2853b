"""Huffman codes: brute force over all trees, certificates that hold and that refuse, and alphabets at the edge."""

import time
from heapq import heapify, heappop, heappush

import numpy as np
import pytest

from lemmata.probability.huffman import HuffmanCode, canonical_words, huffman_code, huffman_lengths, level_excess
from lemmata.probability.information import entropy


def all_lengths(k):
    """The sorted lengths of all full binary trees with k leaves."""
    found = {(0,)}
    for _ in range(k - 1):
        found = {tuple(sorted((*t[:i], *t[i + 1 :], t[i] + 1, t[i] + 1))) for t in found for i in range(len(t))}
    return found


def least_length(p):
    """The least expected length over all full trees: shorter words for likelier symbols."""
    p = np.sort(p)[::-1]
    return min(float(p @ lengths) for lengths in all_lengths(len(p)))


def heap_length(p):
    """Huffman's cost with a heap: the sum of the weights of all merged nodes."""
    heap, cost = [float(v) for v in p], 0.0
    heapify(heap)
    while len(heap) > 1:
        merged = heappop(heap) + heappop(heap)
        cost += merged
        heappush(heap, merged)
    return cost


@pytest.mark.item("PRB-22")
def test_code_of_the_catalogue():
    code = huffman_code([0.4, 0.3, 0.2, 0.1])
    assert entropy([0.4, 0.3, 0.2, 0.1], base=2) == pytest.approx(1.846439, abs=5e-7)
    assert code.expected_length == pytest.approx(1.9, rel=1e-15)
    assert code.lengths == {0: 1, 1: 2, 2: 3, 3: 3}
    assert code.certificate().holds


@pytest.mark.item("PRB-22")
@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("concentration", [0.1, 1.0, 20.0])
def test_no_tree_is_shorter_and_the_certificate_says_so(k, concentration):
    p = np.random.default_rng(k).dirichlet(np.full(k, concentration)) + 1e-6
    p /= p.sum()
    code = huffman_code(p)
    assert code.expected_length == pytest.approx(least_length(p), rel=1e-12)
    bits = entropy(p, base=2)
    assert bits - 1e-12 <= code.expected_length < bits + 1
    assert sum(2.0 ** -len(word) for word in code.codes.values()) == 1
    words = list(code.codes.values())
    assert not any(a != b and b.startswith(a) for a in words for b in words)
    assert len(set(words)) == k
    assert code.certificate().holds


@pytest.mark.item("PRB-22")
@pytest.mark.parametrize("seed", range(5))
def test_levels_accept_optimal_lengths_and_no_others(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6))
    best, accepted = least_length(p), 0
    for lengths in all_lengths(6):
        for _ in range(5):
            mixed = rng.permutation(lengths)
            optimal = p @ mixed < best + 1e-12
            assert (level_excess(mixed, p) <= 1e-12) == optimal
        ordered = np.empty(6, dtype=int)
        ordered[np.argsort(-p)] = lengths
        optimal = p @ ordered < best + 1e-12
        assert (level_excess(ordered, p) <= 1e-12) == optimal
        accepted += optimal
    assert accepted == 1


@pytest.mark.item("PRB-22")
def test_certificate_refuses_what_is_no_code_or_not_the_best():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    for words, check in [
        (["00", "01", "10", "11"], {"levels"}),  # a prefix code, longer than need be
        (["0", "01", "110", "111"], {"prefix"}),
        (["0", "10", "110", "1110"], {"kraft", "levels"}),  # a bit too many
        (["0", "1", "10", "11"], {"prefix", "kraft", "entropy", "levels"}),  # shorter than the entropy
        (["111", "110", "10", "0"], {"levels"}),  # long words for likely symbols
    ]:
        failed = {c.name for c in HuffmanCode(dict(enumerate(words)), p).certificate().failed}
        assert failed == check, words
    long = HuffmanCode({0: "111", 1: "110", 2: "10", 3: "0"}, np.array([0.97, 0.01, 0.01, 0.01]))
    assert {c.name for c in long.certificate().failed} == {"entropy", "levels"}


@pytest.mark.item("PRB-22")
def test_lengths_of_halves_are_their_logarithms():
    p = 0.5 ** np.array([1, 2, 3, 4, 5, 5])
    code = huffman_code(p)
    assert list(code.lengths.values()) == [1, 2, 3, 4, 5, 5]
    assert code.expected_length == 1.9375 == pytest.approx(entropy(p, base=2), rel=1e-15)


def test_text_there_and_back():
    text = "she sells sea shells by the sea shore"
    symbols, counts = np.unique(list(text), return_counts=True)
    code = huffman_code(counts / len(text), symbols.tolist())
    bits = code.encode(text)
    assert "".join(code.decode(bits)) == text
    assert code.decode(bits, n=len(text)) == list(text)
    assert len(bits) == pytest.approx(code.expected_length * len(text), rel=1e-12)
    with pytest.raises(ValueError, match="end within a code word, after 36 whole ones"):
        code.decode(bits[:-1])
    with pytest.raises(ValueError, match="array of numbers"):
        huffman_code({"a": 0.5, "b": 0.5})
    with pytest.raises(ValueError, match="37 symbols where 3"):
        code.decode(bits, n=3)
    with pytest.raises(ValueError, match="0 and 1"):
        code.decode("012")
    with pytest.raises(ValueError, match="'q' has no code word"):
        code.encode("quay")


@pytest.mark.item("PRB-22")
def test_a_sole_symbol_needs_no_bits():
    for code in (huffman_code([1.0], "a"), huffman_code([0.0, 1.0], "ba")):
        assert code.codes == {"a": ""}
        assert code.expected_length == 0
        assert code.certificate().holds
        assert code.encode("aaa") == ""
        assert code.decode("", n=3) == ["a"] * 3
        for bits, n in (("", None), ("0", 1)):
            with pytest.raises(ValueError, match="n must say"):
                code.decode(bits, n=n)


@pytest.mark.item("PRB-22")
def test_symbols_that_never_occur_have_no_word():
    code = huffman_code([0.5, 0.0, 0.5, 0.0], "abcd")
    assert code.codes == {"a": "0", "c": "1"}
    assert code.certificate().holds
    with pytest.raises(ValueError, match="'b' has no code word"):
        code.encode("ab")


@pytest.mark.item("PRB-22")
def test_ties_are_broken_the_same_way_and_for_short_words():
    assert huffman_lengths([0.4, 0.2, 0.2, 0.1, 0.1]).tolist() == [2, 2, 2, 3, 3]  # and not 1, 2, 3, 4, 4
    assert huffman_lengths(np.full(8, 1 / 8)).tolist() == [3] * 8
    p = np.full(5, 0.2)
    assert huffman_code(p).codes == huffman_code(p).codes == {0: "110", 1: "111", 2: "00", 3: "01", 4: "10"}
    assert canonical_words([2, 1, 3, 3]) == ["10", "0", "110", "111"]


@pytest.mark.item("PRB-22")
@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_a_large_alphabet_is_no_trouble(power):
    k = 100_000
    weights = np.arange(1, k + 1) ** -power
    p = np.random.default_rng(0).permutation(weights / weights.sum())
    start = time.perf_counter()
    code = huffman_code(p)
    assert time.perf_counter() - start < 10  # it takes a third of a second
    assert code.expected_length == pytest.approx(heap_length(p), rel=1e-12)
    assert code.certificate().holds
    draws = np.random.default_rng(1).choice(k, p=p, size=1000).tolist()
    assert code.decode(code.encode(draws)) == draws


@pytest.mark.item("PRB-22")
def test_a_code_as_deep_as_floats_allow():
    p = 0.5 ** np.append(np.arange(1, 1001), 1000)  # words of 1, 2, …, 1000, 1000 bits
    code = huffman_code(p)
    assert list(code.lengths.values()) == [*range(1, 1001), 1000]
    assert code.certificate().holds
    assert code.decode(code.encode([0, 999, 3, 1000])) == [0, 999, 3, 1000]


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="sum to 1"):
        huffman_code([3, 2, 1])
    for p, symbols in (([[0.5, 0.5]], None), ([0.5, 0.5], "a"), ([0.5, 0.5], "aa")):
        with pytest.raises(ValueError, match="as many different symbols"):
            huffman_code(p, symbols)
