"""Silhouettes and elbows are drawn as they were computed."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import StepPatch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.cluster import DBSCAN
from sklearn.metrics import silhouette_samples

from lemmata.cluster import KMeans, KMedians, KMedoids, elbow
from lemmata.cluster.elbow import Elbow
from lemmata.plot import ElbowDisplay, SilhouetteDisplay
from lemmata.plot.elbow import panel_below


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, 3)), rng.normal(size=(2 * n, 3)) + 4, rng.normal(size=(n // 6, 3)) - 6])


def steps(display):
    """Give the heights and edges of each cluster, by label."""
    patches = [patch for patch in display.ax_.patches if isinstance(patch, StepPatch)]
    return {patch.get_label(): patch.get_data() for patch in patches}


@pytest.mark.parametrize(
    ("model", "metric"),
    [(KMeans(3, random_state=0), "euclidean"), (KMedians(3, random_state=0), "l1"), (KMedoids(3, metric="l1"), "l1")],
)
def test_silhouettes_are_sorted_within_their_clusters(model, metric):
    X = rows()
    display = SilhouetteDisplay.from_estimator(model.fit(X), X)
    expected = silhouette_samples(X, model.labels_, metric=metric)
    assert_allclose(display.silhouettes, expected, rtol=1e-9, atol=1e-12)
    assert_allclose(display.score, expected.mean())
    drawn, last = steps(display), -np.inf
    assert list(drawn) == [str(k) for k in range(3)]
    for k in range(3):
        data = drawn[str(k)]
        assert_allclose(data.values, np.sort(expected[model.labels_ == k])[::-1], rtol=1e-9)
        assert_allclose(np.diff(data.edges), 1.0)  # every row has the same height
        assert data.edges[0] > last
        last = data.edges[-1]
    dashed = [line for line in display.ax_.lines if line.get_linestyle() == "--"]
    assert_allclose(dashed[0].get_xdata(), expected.mean())
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels[0].startswith(f"0: {(model.labels_ == 0).sum()} rows, mean ")
    display.figure_.canvas.draw()


def test_precomputed_distances_and_samples():
    X = rows()
    D = cdist(X, X, "cityblock")
    model = KMedoids(3, metric="precomputed").fit(D)
    display = SilhouetteDisplay.from_estimator(model, D)
    assert_allclose(display.silhouettes, silhouette_samples(D, model.labels_, metric="precomputed"), rtol=1e-9)
    few = SilhouetteDisplay.from_estimator(model, D, max_rows=40)
    assert len(few.silhouettes) == 40
    chosen = np.sort(np.random.default_rng(0).choice(len(D), 40, replace=False))
    assert_array_equal(few.labels, model.labels_[chosen])
    assert_allclose(few.silhouettes, silhouette_samples(D[np.ix_(chosen, chosen)], few.labels, metric="precomputed"), rtol=1e-9)


def test_clusterers_that_cannot_predict_and_other_labels():
    X = rows()
    model = DBSCAN(eps=2.5).fit(X)
    display = SilhouetteDisplay.from_estimator(model, X)
    assert_array_equal(display.labels, model.labels_)
    assert len(SilhouetteDisplay.from_estimator(model, X, max_rows=50).labels) == 50
    with pytest.raises(ValueError, match="DBSCAN cannot predict"):
        SilhouetteDisplay.from_estimator(model, X[:10])
    named = SilhouetteDisplay.from_labels([[0.0], [1.0], [9.0], [5.0]], ["a", "a", "b", "a"], name="mine")
    assert named.ax_.get_title() == "mine"
    assert named.ax_.get_yticklabels()[1].get_text() == "b: 1 row, mean 0.00"
    assert named.ax_.get_xlim()[0] < named.silhouettes.min() < 0
    assert "1 row is below 0" in named.ax_.get_xlabel()
    with pytest.raises(ValueError, match="Silhouettes need from 2"):
        SilhouetteDisplay.from_labels(X, np.zeros(len(X)))


def test_a_small_cluster_keeps_room_for_its_name():
    labels = np.repeat([0, 1, 2, 3], [400, 1, 1, 400])
    display = SilhouetteDisplay.from_labels(np.arange(802.0)[:, None] + 50 * labels[:, None], labels)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))


def test_the_elbow_is_marked_on_its_curve():
    curve = elbow(KMeans(random_state=0, n_init=3), rows(), range(1, 8))
    display = ElbowDisplay.from_elbow(curve)
    lines = {line.get_label(): line for line in display.ax_.lines}
    assert_array_equal(lines["loss"].get_xydata(), np.column_stack([curve.n_clusters, curve.inertia]))
    assert_array_equal(lines["chord"].get_ydata(), curve.inertia[[0, -1]])
    (mark,) = lines[f"elbow: {curve.suggested} clusters"].get_xydata()
    assert_array_equal(mark, [curve.suggested, curve.inertia[curve.suggested - 1]])
    drop = display.ax_.lines[2].get_ydata()  # from the curve up to the chord
    scale = curve.inertia[0] - curve.inertia[-1]
    assert_allclose((drop[1] - drop[0]) / scale, curve.below_chord.max(), rtol=1e-9)
    scores = display.silhouette_ax_.lines
    assert_array_equal(scores[0].get_xydata(), np.column_stack([curve.n_clusters, curve.silhouette])[1:])
    assert scores[1].get_xdata() == [curve.by_silhouette]
    assert display.ax_.get_shared_x_axes().joined(display.ax_, display.silhouette_ax_)


def test_the_elbow_of_an_estimator_and_of_none():
    display = ElbowDisplay.from_estimator(KMeans(random_state=0), rows(), n_clusters=[1, 2, 5])
    assert_array_equal(display.curve.n_clusters, [1, 2, 5])
    assert display.ax_.get_title().startswith("KMeans: elbow at 2 clusters")
    alone = ElbowDisplay(Elbow(np.arange(1, 4), np.array([9.0, 2.0, 1.0]), np.full(3, np.nan))).plot()
    assert alone.silhouette_ax_ is None
    assert alone.ax_.get_title() == "elbow at 2 clusters"
    assert alone.ax_.get_xlabel() == "number of clusters"


def test_nothing_is_cut_off():
    for display in (
        ElbowDisplay.from_estimator(KMeans(random_state=0), rows(), n_clusters=range(1, 6)),
        SilhouetteDisplay.from_estimator(KMeans(3, random_state=0).fit(rows()), rows()),
    ):
        figure = display.figure_
        figure.canvas.draw()
        inside, page = figure.get_tightbbox(), figure.get_size_inches()
        assert min(inside.x0, inside.y0) >= 0
        assert (np.array([inside.x1, inside.y1]) <= page).all()


def test_panels_stand_in_the_place_of_the_axes():
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    below = panel_below(right, 0.4)
    figure.canvas.draw()
    assert_allclose(below.get_position().y0, left.get_position().y0, atol=1e-6)
    assert_allclose(right.get_position().y1, left.get_position().y1, atol=1e-6)
    assert below.get_position().y1 < right.get_position().y0
