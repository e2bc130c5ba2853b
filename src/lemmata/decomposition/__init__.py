"""Few numbers for many: principal components, factors and parts of a table."""

from lemmata.decomposition.kernel_pca import KernelPCA
from lemmata.decomposition.nmf import NMF
from lemmata.decomposition.pca import PCA
from lemmata.decomposition.ppca import ProbabilisticPCA
from lemmata.decomposition.select_rank import RankCurve, select_rank

__all__ = ["PCA", "ProbabilisticPCA", "KernelPCA", "NMF", "RankCurve", "select_rank"]
