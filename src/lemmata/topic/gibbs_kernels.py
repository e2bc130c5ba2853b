"""A sweep of the collapsed Gibbs sampler of topics, over blocks of documents and words that share neither.

Documents are cut into P shards and words into P groups (`gibbs`). Sub-sweep i works on the P blocks (shard b, group b + i): no
two of them know a common document or a common word, so their tokens can be drawn at the same time, and each block sees the
counts of its documents and of its words as they are. Only the totals nₖ of the topics are those from before the sub-sweep, plus
what the block itself has changed; all threads meet, and add up the changes, before the next sub-sweep.

A thread with several blocks draws one token of each in turn. The draws of such a round are independent of each other, so the
processor works on the next while the one before is not finished (`lanes`); with one block at a time a token takes twice as
long.

All counts of topics are rows of a multiple of 16 numbers, the last of which stay 0.
"""

import math
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import APART, meet
from lemmata.core.xoshiro import FORTY_FIVE, LOW, NINETEEN, SEVENTEEN, TOP
from lemmata.topic.lanes import LANES, choose, room

ABREAST = 8  # blocks that a thread draws from in turn; more gain nothing
STRETCHES = 64  # into which words, and documents, are cut where log p(w, z) is summed
FIRST_BITS, BIT = np.uint64(40), np.float32(2.0**-24)  # a uniform number of single precision has 24 bits
ONE, ONE_TOKEN = np.uint64(1), np.int32(1)


class Corpus(NamedTuple):
    """Tokens in the order in which they are drawn: by block, in it by document, in it by word.

    Attributes
    ----------
    n_shards : P.
    words : Word of each token.
    visit_documents, visit_starts : A visit is what a document has of a block: its number, and its first token; one more start
        than visits.
    block_visits : First visit of block (b, g) at b P + g, and their number in the end.
    """

    n_shards: int
    words: np.ndarray
    visit_documents: np.ndarray
    visit_starts: np.ndarray
    block_visits: np.ndarray


class Counts(NamedTuple):
    """Topics of the tokens, in their order, and how often each topic occurs: the state of a chain.

    Attributes
    ----------
    of_words, of_documents : Flat, one row of topics for each word and each document.
    totals : Of each topic.
    """

    topics: np.ndarray
    of_words: np.ndarray
    of_documents: np.ndarray
    totals: np.ndarray


class Prior(NamedTuple):
    """Parameters of the two Dirichlet priors, α of each topic (0 beyond the last) and γ, and tables that follow from them.

    Attributes
    ----------
    word_logs : log Γ(n + γ) − log Γ(γ), for small n.
    document_logs : (topics or 1, small n), the same for α; one row where all topics have the same.
    """

    alpha: np.ndarray
    gamma: float
    word_logs: np.ndarray
    document_logs: np.ndarray


class Room(NamedTuple):
    """Where the threads of a sweep work: totals as each block sees them, for even and odd sub-sweeps, and sums of log p."""

    marks: np.ndarray
    seen: np.ndarray
    sums: np.ndarray


@kernel
def count_tokens(corpus, counts, width):
    """Count all topics anew."""
    for v in range(len(corpus.visit_documents)):
        document = np.int64(corpus.visit_documents[v]) * width
        for i in range(corpus.visit_starts[v], corpus.visit_starts[v + 1]):
            k = np.int64(counts.topics[i])
            counts.of_words[np.int64(corpus.words[i]) * width + k] += 1
            counts.of_documents[document + k] += 1
            counts.totals[k] += 1


@kernel
def draw_blocks(corpus, counts, prior, seen, first, last, diagonal, states, n_topics):
    """Draw the tokens of the blocks (b, b + diagonal), first ≤ b < last, one of each in turn.

    Parameters
    ----------
    seen : (shards, row), totals as each block sees them.
    states : (shards, 4), generators of the blocks.
    """
    words, documents, starts = corpus.words, corpus.visit_documents, corpus.visit_starts
    topics, of_words, of_documents = counts.topics, counts.of_words, counts.of_documents
    alpha, gamma, shards = prior.alpha, np.float32(prior.gamma), corpus.n_shards
    blocks, topics_and_none, more = last - first, seen.shape[1], room(seen.shape[1])
    width, step = np.uint64(topics_and_none), np.uint64(more)
    # What is written for every token is copied: two threads that write to one line of the cache would wait for each other.
    totals, own = seen[first:last].copy().reshape(-1), states[first:last].copy()
    spread = np.float32(len(of_words) // topics_and_none * prior.gamma)  # V γ
    # Of each block: the inverse totals, and the weights (n_dk + α_k)/(n_k + V γ) of the topics in the present document.
    inverse, weights = np.zeros(blocks * topics_and_none, np.float32), np.zeros(blocks * topics_and_none, np.float32)
    sums = np.full(blocks * more, np.inf, np.float32)
    at = np.zeros((8, blocks), np.uint64)  # where each block is; so many rows, named in the next line
    block, token, end, visit, done, row, column, drawn = at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
    active = np.uint64(0)
    for b in range(first, last):
        number = b * shards + (b + diagonal) % shards
        if corpus.block_visits[number] < corpus.block_visits[number + 1]:
            block[active], visit[active] = b - first, corpus.block_visits[number]
            done[active] = corpus.block_visits[number + 1]
            token[active] = end[active] = starts[visit[active]]
            for k in range(width):
                inverse[np.uint64(b - first) * width + k] = np.float32(1.0) / (np.float32(seen[b, k]) + spread)
            active += ONE
    while active > 0:
        s = np.uint64(0)
        while s < active:  # whose document has ended?
            if token[s] == end[s]:
                if visit[s] == done[s]:
                    active -= ONE
                    at[:, s] = at[:, active]
                    for k in range(width):
                        weights[s * width + k] = weights[active * width + k]
                    continue
                column[s] = np.uint64(documents[visit[s]]) * width
                visit[s] += ONE
                end[s] = starts[visit[s]]
                a, b, c = s * width, block[s] * width, column[s]
                for k in range(width):
                    weights[a + k] = (alpha[k] + np.float32(of_documents[c + k])) * inverse[b + k]
            s += ONE
        for s in range(active):  # take the tokens out
            k = np.uint64(topics[token[s]])
            row[s], drawn[s] = np.uint64(words[token[s]]) * width, k
            of_words[row[s] + k] -= ONE_TOKEN
            in_total, in_document = block[s] * width + k, column[s] + k
            totals[in_total] -= ONE_TOKEN
            of_documents[in_document] -= 1
            share = np.float32(1.0) / (np.float32(totals[in_total]) + spread)
            inverse[in_total] = share
            weights[s * width + k] = (alpha[k] + np.float32(of_documents[in_document])) * share
        for s in range(active):  # draw
            b = block[s]
            # xoshiro's `next_uniform`, written out: a view of the row, to call it with, would be counted for every token
            s0, s1, s2, s3 = own[b, 0], own[b, 1], own[b, 2], own[b, 3]
            x = ((s0 & LOW) + (s3 & LOW)) ^ ((s0 ^ s3) & TOP)
            s2 ^= s0
            s3 ^= s1
            own[b, 0], own[b, 1] = s0 ^ s3, s1 ^ s2
            own[b, 2] = s2 ^ (s1 << SEVENTEEN)
            own[b, 3] = (s3 << FORTY_FIVE) | (s3 >> NINETEEN)
            u = np.float32(np.int64(x >> FIRST_BITS)) * BIT
            k = choose(weights, s * width, of_words, row[s], sums, s * step, width, gamma, u)
            drawn[s] = np.uint64(k) if k < n_topics else drawn[s]  # a topic without weight: by rounding, the token stays
        for s in range(active):  # put the tokens in
            k = drawn[s]
            topics[token[s]] = k
            of_words[row[s] + k] += ONE_TOKEN
            in_total, in_document = block[s] * width + k, column[s] + k
            totals[in_total] += ONE_TOKEN
            of_documents[in_document] += 1
            share = np.float32(1.0) / (np.float32(totals[in_total]) + spread)
            inverse[in_total] = share
            weights[s * width + k] = (alpha[k] + np.float32(of_documents[in_document])) * share
            token[s] += ONE
    seen[first:last] = totals.reshape(blocks, topics_and_none)
    states[first:last] = own


@kernel
def log_gammas(counts, first, last, width, prior, logs):
    """Sum log Γ(n + a) − log Γ(a) over the topics of some rows; zeros, which add nothing, are passed over sixteen at a time."""
    total, small, table = 0.0, logs.shape[1], logs.reshape(-1)
    each = np.uint64(small if len(logs) > 1 else 0)
    for start in range(first * width, last * width, LANES):
        some, at = 0, np.uint64(start)
        for i in range(at, at + np.uint64(LANES)):
            some |= counts[i]
        if 0 < some < small:
            row = np.uint64(start % width) * each
            for j in range(np.uint64(LANES)):
                total += table[row + j * each + np.uint64(counts[at + j])]
        elif some:
            for j in range(LANES):
                n, a = np.int64(counts[start + j]), np.float64(prior[(start + j) % width])
                if n > 0:
                    total += math.lgamma(n + a) - math.lgamma(a)
    return total


@kernel
def sweep(corpus, counts, prior, work, states, n_topics, me):
    """Draw every token once: the share of one thread, number `me` of as many as have marks to meet.

    In the end `work.sums` holds, by stretches of words and of documents, what depends on the counts in log p(w, z).
    """
    n_threads, shards, width = len(work.marks) // APART, corpus.n_shards, len(counts.totals)
    first, last = me * shards // n_threads, (me + 1) * shards // n_threads
    totals = counts.totals.copy()
    for diagonal in range(shards):
        seen = work.seen[diagonal % 2]  # of the other parity a slower thread may still read
        for b in range(first, last):
            for k in range(width):
                seen[b, k] = totals[k]
        for b in range(first, last, ABREAST):
            draw_blocks(corpus, counts, prior, seen, b, min(b + ABREAST, last), diagonal, states, n_topics)
        meet(work.marks, me)
        for k in range(width):
            before = totals[k]
            for b in range(shards):
                totals[k] += seen[b, k] - before
    gammas = np.full(width, prior.gamma)
    n_words, n_documents = len(counts.of_words) // width, len(counts.of_documents) // width
    for s in range(me, STRETCHES, n_threads):
        a, b = n_words * s // STRETCHES, n_words * (s + 1) // STRETCHES
        work.sums[0, s] = log_gammas(counts.of_words, a, b, width, gammas, prior.word_logs)
        a, b = n_documents * s // STRETCHES, n_documents * (s + 1) // STRETCHES
        work.sums[1, s] = log_gammas(counts.of_documents, a, b, width, prior.alpha, prior.document_logs)
    if me == 0:
        counts.totals[:] = totals
