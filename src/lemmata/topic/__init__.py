"""Topics: what documents are about, found from the counts of their words."""

from lemmata.topic.coherence import coherence
from lemmata.topic.lda import LatentDirichletAllocation

__all__ = ["LatentDirichletAllocation", "coherence"]
