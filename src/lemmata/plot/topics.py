"""The words of topics, as bars of their probabilities."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import axes, class_colors, head, quiet
from lemmata.plot.importance import LETTERS
from lemmata.plot.network import clipped


class TopicWordsDisplay:
    """The most probable words of each topic, side by side.

    Parameters
    ----------
    topics : (topics, words), probabilities or weights of the words in each topic; rows are normalized.
    words : Names of the words.
    top : How many words of each topic to show.
    numbers : Which topics to show; all of them, or the first eight, if None.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes around all topics, and figure, of the last plot.
    axes_ : Axes of each topic.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = TopicWordsDisplay([[6, 3, 1, 0], [0, 1, 2, 7]], words=["sea", "ship", "rain", "sun"], top=2).plot()
    >>> [[text.get_text() for text in ax.get_yticklabels()] for ax in display.axes_]
    [['sea', 'ship'], ['sun', 'rain']]
    """

    def __init__(
        self,
        topics: Any,
        *,
        words: Sequence[str] | None = None,
        top: int = 10,
        numbers: Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        topics = np.asarray(topics, dtype=float)
        self.topics = topics / np.maximum(topics.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        self.words = [f"word {j}" for j in range(topics.shape[1])] if words is None else [str(w) for w in words]
        self.top = top
        self.numbers = list(range(min(len(topics), 8))) if numbers is None else list(numbers)
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        words: Sequence[str] | None = None,
        top: int = 10,
        numbers: Sequence[int] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the `components_` of a topic model; documents are not read, but their columns may have names."""
        if words is None:
            words = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
        name = type(estimator).__name__ if name is None else name
        return cls(estimator.components_, words=words, top=top, numbers=numbers, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each topic."""
        from matplotlib.ticker import MaxNLocator

        n = len(self.numbers)
        across = min(n, 4)
        down = -(-n // across)
        top = min(self.top, self.topics.shape[1])
        ax = axes(ax, (2.6 * across, down * (0.6 + 0.21 * top) + 0.3))
        place = ax.get_subplotspec()
        grid = ax.figure.add_gridspec(down, across) if place is None else place.subgridspec(down, across)
        ax.set_axis_off()
        head(ax, self.name)
        self.axes_ = []
        for i, (k, color) in enumerate(zip(self.numbers, class_colors(max(n, 2)), strict=False)):
            panel = ax.figure.add_subplot(grid[i // across, i % across])
            order = np.argsort(-self.topics[k], kind="stable")[:top]
            panel.barh(np.arange(top), self.topics[k, order], height=0.7, color=color)
            panel.set_yticks(np.arange(top), [clipped(self.words[j], LETTERS) for j in order])
            panel.set_ylim(top - 0.5, -0.5)
            panel.xaxis.set_major_locator(MaxNLocator(3))
            panel.set_title(f"topic {k}", fontsize="small", loc="left")
            panel.tick_params(left=False, labelsize="small")
            quiet(panel)
            self.axes_.append(panel)
        self.ax_, self.figure_ = ax, ax.figure
        return self
