"""Huffman codes: binary code words for symbols, none the beginning of another, of the least expected length.

Merge the two least probable nodes into one until one is left; the code word of a symbol is its path in this tree. Of all
prefix codes it has the least L = Σ p ℓ, and with the entropy H in bits H ≤ L < H + 1. Only the lengths matter; words are then
dealt out in order of (length, place), the canonical code.

The proof of optimality needs no merging [1]. Build a tree from the lengths alone: sort the nodes of the deepest level by
weight, let neighbors be siblings, add their parents to the level above, and go on. If no node is heavier than a node of the
level above, the nodes in order from the deepest level up never lose weight and siblings are neighbors, so Huffman's merges,
which take the two lightest nodes each time, could have been these. If one is heavier, exchanging the two saves length: the
check holds for the optimal lengths, and for no others.

Symbols of probability 0 have no code word. A sole symbol has the empty one: it needs no bits, and L = H = 0.

[1] Gallager, IEEE Trans. Inf. Theory 24 (1978). Huffman, Proc. IRE 40 (1952).
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.probability.arrays import check_probabilities
from lemmata.probability.information import entropy

ROUNDING = 1e-12  # of sums of probabilities: no code can be better by more than the bits this mass takes


def huffman_lengths(weights):
    """Return the depth of each of K > 0 positive weights in Huffman's tree, in O(K log K).

    Sorted leaves and merged nodes are two queues, each in order of weight, so the lightest node is at the head of one of them.
    Leaves go first on ties, earlier ones before later ones: the longest word is then as short as it can be.

    Examples
    --------
    >>> huffman_lengths([0.4, 0.3, 0.2, 0.1])
    array([1, 2, 3, 3])
    """
    k = len(weights)
    order = np.argsort(weights, kind="stable")
    weight = [float(weights[i]) for i in order]
    parent = [0] * (2 * k - 1)
    leaf, merged = 0, k
    for new in range(k, 2 * k - 1):
        total = 0.0
        for _ in range(2):
            if leaf < k and (merged == new or weight[leaf] <= weight[merged]):
                node, leaf = leaf, leaf + 1
            else:
                node, merged = merged, merged + 1
            parent[node] = new
            total += weight[node]
        weight.append(total)
    depth = [0] * (2 * k - 1)
    for node in range(2 * k - 3, -1, -1):
        depth[node] = depth[parent[node]] + 1
    lengths = np.empty(k, dtype=int)
    lengths[order] = depth[:k]
    return lengths


def canonical_words(lengths):
    """Return code words of lengths with Σ 2^−ℓ ≤ 1: in order of (length, place) each is the next number of its length.

    Examples
    --------
    >>> canonical_words([1, 3, 2, 3])
    ['0', '110', '10', '111']
    """
    words = [""] * len(lengths)
    code, last = -1, 0
    for i in np.argsort(lengths, kind="stable"):
        length = int(lengths[i])
        code, last = (code + 1) << (length - last), length
        words[i] = format(code, f"0{length}b") if length else ""
    return words


def level_excess(lengths, weights):
    """Return by how much a node is heavier than one of the level above, at most, in the tree of the module's proof.

    Zero for the lengths of an optimal code, positive for others; infinite if the words do not fill a tree, Σ 2^−ℓ ≠ 1.

    Examples
    --------
    >>> level_excess([1, 2, 3, 3], [0.4, 0.3, 0.2, 0.1]), level_excess([2, 2, 2, 2], [0.4, 0.3, 0.2, 0.1])
    (0.0, 0.1)
    """
    lengths, weights = np.asarray(lengths), np.asarray(weights, dtype=float)
    order = np.lexsort((weights, -lengths))
    leaves = iter(np.split(weights[order], np.flatnonzero(np.diff(lengths[order])) + 1))
    depths = {int(length): part for length, part in zip(-np.unique(-lengths), leaves, strict=True)}
    deepest = max(depths)
    worst, nodes = 0.0, depths[deepest]
    for depth in range(deepest - 1, -1, -1):
        if len(nodes) % 2:
            return np.inf
        parents = nodes[::2] + nodes[1::2]
        above = np.sort(np.append(parents, depths.get(depth, ())))
        worst = max(worst, float(nodes[-1] - above[0]))
        nodes = above
    return worst if len(nodes) == 1 else np.inf


@dataclass(frozen=True)
class HuffmanCode:
    """A prefix code of least expected length.

    Attributes
    ----------
    codes : Code word of each symbol of positive probability, a string of 0 and 1.
    p : Probability of each of these symbols.
    """

    codes: dict[Hashable, str]
    p: np.ndarray = field(repr=False)

    @property
    def lengths(self):
        """Length of each code word, by symbol."""
        return {symbol: len(word) for symbol, word in self.codes.items()}

    @property
    def expected_length(self):
        """L = Σ p ℓ, in bits for a symbol."""
        return float(self.p @ [len(word) for word in self.codes.values()])

    @cached_property
    def _symbols(self):
        return {(len(word), int(word or "0", 2)): symbol for symbol, word in self.codes.items()}

    def encode(self, symbols):
        """Return the code words of symbols, one after the other."""
        try:
            return "".join([self.codes[symbol] for symbol in symbols])
        except KeyError as error:
            raise ValueError(f"The symbol {error.args[0]!r} has no code word, since its probability is 0 or unknown.") from None

    def decode(self, bits, n=None):
        """Return the symbols of a string of bits.

        Parameters
        ----------
        n : Number of symbols to expect; needed only for a sole symbol, which takes no bits.
        """
        if len(self.codes) == 1 and not bits and n is not None:
            return list(self.codes) * n
        if len(self.codes) == 1:
            raise ValueError("The sole symbol takes no bits: bits must be empty, and n must say how often it occurs.")
        symbols, length, code = [], 0, 0
        for place, bit in enumerate(bits):
            if bit not in "01":
                raise ValueError(f"Bits must be a string of 0 and 1, and there is {bit!r} at place {place}.")
            length, code = length + 1, 2 * code + (bit == "1")
            if (length, code) in self._symbols:
                symbols.append(self._symbols[length, code])
                length, code = 0, 0
        if length:
            raise ValueError(f"The bits end within a code word, after {len(symbols)} whole ones.")
        if n not in (None, len(symbols)):
            raise ValueError(f"The bits hold {len(symbols)} symbols where {n} were expected.")
        return symbols

    def certificate(self):
        """Check from the words and the probabilities alone that the code is a prefix code, and that no other is shorter."""
        words = sorted(self.codes.values())
        clashes = sum(later.startswith(word) for word, later in pairwise(words))
        lengths = np.array([len(word) for word in self.codes.values()])
        deepest = int(lengths.max())
        missing = abs(sum(1 << (deepest - int(length)) for length in lengths) - (1 << deepest)) / (1 << deepest)
        slack = self.expected_length - entropy(self.p / self.p.sum(), base=2)
        return Certificate(
            Check("prefix", float(clashes), 0.0, "proof", "no code word begins another"),
            Check("kraft", float(missing), 0.0, "proof", "the sum of 2^-length is 1: no word could be shorter"),
            Check(
                "entropy", max(-slack, slack - 1), ROUNDING, "proof", "the expected length is at least H and less than H + 1"
            ),
            Check("levels", level_excess(lengths, self.p), ROUNDING, "proof", "no prefix code has a shorter expected length"),
            subject=f"Huffman code of {len(words)} symbols",
        )


def huffman_code(p, symbols=None):
    """Find the prefix code of least expected length.

    Parameters
    ----------
    p : Probabilities of the symbols.
    symbols : What the symbols are; 0, 1, … if missing.

    Returns
    -------
    code : `HuffmanCode`.

    Examples
    --------
    >>> code = huffman_code([0.4, 0.3, 0.2, 0.1], "abcd")
    >>> code.codes, code.expected_length
    ({'a': '0', 'b': '10', 'c': '110', 'd': '111'}, 1.9)
    >>> code.encode("abad"), code.decode("0100111")
    ('0100111', ['a', 'b', 'a', 'd'])
    >>> print(code.certificate())
    Huffman code of 4 symbols: certificate holds (proof)
      check    value      limit  kind   claim
      prefix    0.0e+00 ≤ 0e+00  proof  no code word begins another
      kraft     0.0e+00 ≤ 0e+00  proof  the sum of 2^-length is 1: no word could be shorter
      entropy  -5.4e-02 ≤ 1e-12  proof  the expected length is at least H and less than H + 1
      levels    0.0e+00 ≤ 1e-12  proof  no prefix code has a shorter expected length
    """
    p = check_probabilities(p)
    symbols = list(range(len(p))) if symbols is None else list(symbols)
    if p.ndim != 1 or len(symbols) != len(p) or len(set(symbols)) != len(p):
        raise ValueError(
            f"There must be one vector of probabilities and as many different symbols; got {p.shape}, {len(symbols)}."
        )
    held = np.flatnonzero(p)
    words = canonical_words(huffman_lengths(p[held]))
    return HuffmanCode({symbols[i]: word for i, word in zip(held, words, strict=True)}, p[held])
