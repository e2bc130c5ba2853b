"""Write coherence.json: gensim's c_npmi of two topics in short documents.

    pip install gensim && python tests/reference/make_coherence.py

Documents have at most ten words, gensim's window, so that a window is a document; all pairs of top words occur together
somewhere, so that gensim's 1e-12 beside a zero is not seen.
"""

import json
from pathlib import Path

import numpy as np


def main():
    """Draw documents, and let gensim measure the topics."""
    import gensim  # here, so that collecting tests does not need it
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

    rng = np.random.default_rng(4)
    p = np.array([[0.3, 0.3, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.3, 0.3]])
    counts = np.array([rng.multinomial(rng.integers(2, 9), p[i % 2]) for i in range(60)])
    texts = [[f"w{w}" for w in np.repeat(np.arange(6), row)] for row in counts]
    dictionary = Dictionary([[f"w{w}" for w in range(6)]])
    topics = [[0, 1, 2, 3], [5, 4, 3, 2]]
    words = [[f"w{w}" for w in topic] for topic in topics]
    model = CoherenceModel(topics=words, texts=texts, dictionary=dictionary, coherence="c_npmi", topn=4)
    found = {"version": gensim.__version__, "counts": counts.tolist(), "topics": topics}
    found["c_npmi"] = model.get_coherence_per_topic()
    Path(__file__).with_name("coherence.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
