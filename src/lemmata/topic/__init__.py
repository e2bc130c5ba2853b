"""Topics: what documents are about, found from the counts of their words."""

from lemmata.topic.coherence import coherence
from lemmata.topic.lda import LatentDirichletAllocation
from lemmata.topic.plsa import PLSA

__all__ = ["PLSA", "LatentDirichletAllocation", "coherence"]
