"""Write tomotopy.json: log p(w, z) a word that tomotopy's sampler reaches on the corpus of tests/topic/test_gibbs.py.

pip install tomotopy && python tests/reference/make_tomotopy.py
"""

import json
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]


def main():
    """Let tomotopy sweep, and count its topics."""
    import tomotopy  # here, so that collecting tests does not need it

    sys.path.insert(0, str(TESTS))
    from lemmata.topic.gibbs import log_joint
    from topic.test_gibbs import corpus

    X = corpus(500, 200, 10, 80)
    peer = tomotopy.LDAModel(k=10, alpha=0.1, eta=0.01, seed=1)
    peer.optim_interval = 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        peer.add_doc([str(w) for w in np.repeat(X.indices[start:stop], X.data[start:stop].astype(int))])
    peer.train(300, workers=1)
    order = np.array([int(v) for v in peer.used_vocabs])
    of_documents, of_words = np.zeros((500, 10), int), np.zeros((10, 200), int)
    for row, document in zip(of_documents, peer.docs, strict=True):
        topics, words = np.array(document.topics), order[np.array(document.words)]
        row += np.bincount(topics, minlength=10)
        np.add.at(of_words, (topics, words), 1)
    value = log_joint(of_documents, of_words, np.full(10, 0.1), 0.01) / X.sum()
    found = {"version": tomotopy.__version__, "tokens": int(X.sum()), "log_joint": float(value)}
    Path(__file__).with_name("tomotopy.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
