"""Support vector machines and other methods that see rows through a kernel."""

from lemmata.svm.homogeneous import HomogeneousDual, homogeneous_dual
from lemmata.svm.hulls import HullDistance, hull_distance
from lemmata.svm.kernel_perceptron import KernelPerceptron
from lemmata.svm.kernel_regression import KernelRegression
from lemmata.svm.kernel_vote import KernelVoteClassifier
from lemmata.svm.linear_svc import LinearSVC
from lemmata.svm.linear_svr import LinearSVR
from lemmata.svm.svc import SVC
from lemmata.svm.svr import SVR

__all__ = [
    "HomogeneousDual",
    "HullDistance",
    "KernelPerceptron",
    "KernelRegression",
    "KernelVoteClassifier",
    "LinearSVC",
    "LinearSVR",
    "SVC",
    "SVR",
    "homogeneous_dual",
    "hull_distance",
]
