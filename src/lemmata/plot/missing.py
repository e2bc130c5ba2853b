"""Which entries are missing together: the patterns of a table, how often each occurs, and how much each column lacks."""

from collections import Counter
from typing import Any, NamedTuple, Self

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse, is_stored
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink

MOST = 12  # patterns that are shown one by one
NAMED, NUMBERED = 60, 12  # columns up to which each has room for its name, and for its share
MISSING, SEEN_SHADE = CLASS_COLORS[0], 0.22  # opacity of what is seen
CELL, WIDE, HIGH, GAP = 0.3, 1.5, 0.7, 0.12  # inches of a cell, of the bars on the right and above, and between them


class Patterns(NamedTuple):
    """Patterns of missing entries, the most frequent first: (patterns, columns), true where missing; rows of each; names."""

    missing: np.ndarray
    counts: np.ndarray
    names: list[str]


def patterns_of(X: Any) -> Patterns:
    """Count the patterns of missing entries of a table; a frame may hold columns of any kind.

    Examples
    --------
    >>> patterns = patterns_of([[1.0, np.nan], [2.0, 3.0], [4.0, np.nan], [5.0, 6.0], [7.0, np.nan]])
    >>> patterns.missing.tolist(), patterns.counts.tolist(), patterns.names
    ([[False, True], [False, False]], [3, 2], ['x0', 'x1'])
    """
    frame = None if is_stored(X) or is_sparse(X) or isinstance(X, np.ndarray) else _frame(X)
    if frame is not None:
        mask, names = np.column_stack([_missing(column) for column in frame.iter_columns()]), [str(c) for c in frame.columns]
        counts, d = count_block(mask), len(names)
    else:
        blocks = Blocks.of(X)
        counts, d, names = blocks.reduce(_nan_block), blocks.n_columns, blocks.columns
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))  # equal ones: those that lack later columns first
    packed = np.array([list(key) for key, _ in ordered], dtype=np.uint8)
    missing = np.unpackbits(packed, axis=1, count=d).astype(bool)
    return Patterns(missing, np.array([n for _, n in ordered]), names or [f"x{j}" for j in range(d)])


def count_block(mask: np.ndarray) -> Counter[bytes]:
    """Count the different rows of a mask, each as the bytes of its bits: counts of blocks add up."""
    rows, counts = np.unique(np.packbits(mask, axis=1), axis=0, return_counts=True)
    return Counter({row.tobytes(): int(n) for row, n in zip(rows, counts, strict=True)})


def _nan_block(X: Any) -> Counter[bytes]:
    return count_block(np.isnan(X.toarray() if is_sparse(X) else X))


def _frame(X: Any) -> Any:
    """Give a narwhals frame of a table that has rows, or None for what is no frame."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) and frame.shape[0] and frame.shape[1] else None


def _missing(column: Any) -> np.ndarray:
    """Tell which entries of a column are null or not a number."""
    absent = column.is_null()
    return np.asarray((absent | column.is_nan().fill_null(True) if column.dtype.is_float() else absent).to_numpy(), dtype=bool)


def percent(share: float) -> str:
    """Write a share such that little is not nothing, and much is not all.

    >>> percent(0.0), percent(0.001), percent(0.25), percent(0.999)
    ('0%', '<1%', '25%', '>99%')
    """
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 < share < 1 else f"{share:.0%}"


class MissingPatternDisplay:
    """The patterns of missing entries of a table, the most frequent on top.

    A row of the picture is a set of columns that lack their entries together; the bar on its right counts the rows of the table
    with just this pattern. Bars above are the share that each column lacks. The rare patterns share the last row, whose
    cells are as dark as the share that is missing.

    Parameters
    ----------
    missing : Patterns, of shape (patterns, columns), true where missing; the most frequent first.
    counts : Rows of the table with each.
    names : Names of the columns.
    max_patterns : Patterns to show one by one; the others are summed up.
    name : What to write above the plot.

    Attributes
    ----------
    cells : Shares missing in the rows of the picture, of shape (rows of the picture, columns): 0 or 1 but for the last.
    bars : Rows of the table in each row of the picture.
    shares : Share of missing entries of each column.
    ax_, figure_ : Axes of the cells, and figure, of the last plot.
    count_ax_, share_ax_ : Axes of the bars on the right and above.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> X = [[1.0, np.nan, 1.0], [2.0, 3.0, 1.0], [4.0, np.nan, 1.0], [5.0, 6.0, 2.0], [7.0, np.nan, np.nan], [1.0, 2.0, 3.0]]
    >>> display = MissingPatternDisplay.from_data(X)
    >>> display.cells.tolist(), display.bars.tolist(), display.shares.round(3).tolist()
    ([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]], [3, 2, 1], [0.0, 0.5, 0.167])
    """

    def __init__(
        self, *, missing: np.ndarray, counts: np.ndarray, names: list[str], max_patterns: int = MOST, name: str | None = None
    ) -> None:
        if max_patterns < 1:
            raise ValueError(f"max_patterns must be at least 1, got {max_patterns}.")
        self.missing = missing
        self.counts = counts
        self.names = names
        self.max_patterns = max_patterns
        self.name = name
        self.shares = counts @ missing / counts.sum()
        shown = len(counts) if len(counts) <= max_patterns + 1 else max_patterns  # a single rest is shown as itself
        self.n_rest = len(counts) - shown
        self.cells, self.bars = missing[:shown].astype(float), counts[:shown]
        if self.n_rest:
            rare = counts[shown:]
            self.cells = np.vstack([self.cells, rare @ missing[shown:] / rare.sum()])
            self.bars = np.append(self.bars, rare.sum())

    @classmethod
    def from_data(cls, X: Any, *, max_patterns: int = MOST, ax: Any = None, name: str | None = None) -> Self:
        """Plot the patterns of a table: an array, a frame (of any kinds of columns), a Parquet path or a Dask table."""
        missing, counts, names = patterns_of(X)
        return cls(missing=missing, counts=counts, names=names, max_patterns=max_patterns, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells and the bars."""
        from matplotlib.colors import LinearSegmentedColormap, to_rgba
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        n, d = self.cells.shape
        ax = axes(ax, (float(np.clip(4.2 + CELL * d, 5.6, 14)), 2.6 + CELL * n))
        shades = LinearSegmentedColormap.from_list("missing", [to_rgba(NEUTRAL, SEEN_SHADE), to_rgba(MISSING)])
        width = 1.5 if d <= NAMED else 0  # points between cells
        ax.pcolormesh(
            np.arange(d + 1) - 0.5,
            np.arange(n + 1) - 0.5,
            self.cells,
            cmap=shades,
            vmin=0,
            vmax=1,
            edgecolors=ax.get_facecolor(),
            linewidth=width,
        )
        ax.set(xlim=(-0.5, d - 0.5), ylim=(n - 0.5, -0.5))
        if d <= NAMED:
            short = max(map(len, self.names)) * d <= 24  # letters that stand side by side
            slanted = {"rotation": 45, "rotation_mode": "anchor", "ha": "right"}
            ax.set_xticks(range(d), self.names, **({} if short else slanted))
            ax.tick_params(axis="x", length=0)
        else:
            ax.set_xlabel("number of the column")
        ax.set_yticks(range(n), [self._called(j) for j in range(n)], fontsize="small")
        ax.tick_params(axis="y", length=0)
        ax.spines[:].set_visible(False)
        rows, complete = self.counts.sum(), self.counts[~self.missing.any(axis=1)].sum()
        above = 72 * (HIGH + GAP) + 6  # points: the title stands above the bars, where the layout sees it
        ax.set_title(f"{complete:,} of {rows:,} rows are complete" if self.name is None else self.name, pad=above)
        divider = make_axes_locatable(ax)
        self.count_ax_ = divider.append_axes("right", size=WIDE, pad=GAP, sharey=ax)
        self.share_ax_ = divider.append_axes("top", size=HIGH, pad=GAP, sharex=ax)
        self._count()
        self._share()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _called(self, j: int) -> str:
        if self.n_rest and j == len(self.bars) - 1:
            return f"{self.n_rest:,} rarer patterns"
        lacking = int(self.cells[j].sum())
        return f"{lacking} missing" if lacking else "complete"

    def _count(self) -> None:
        """Draw how many rows have each pattern."""
        ax, total = self.count_ax_, self.counts.sum()
        ax.barh(range(len(self.bars)), self.bars, height=0.72, color=NEUTRAL)
        for j, n in enumerate(self.bars):
            ax.annotate(
                f"{n:,} ({percent(n / total)})", (n, j), (3, 0), textcoords="offset points", va="center", fontsize="small"
            )
        ax.set(xlim=(0, 2.3 * self.bars.max()), xticks=[])  # room for the numbers
        ax.set_xlabel("rows", loc="left", fontsize="small")
        ax.tick_params(axis="y", labelleft=False, length=0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)

    def _share(self) -> None:
        """Draw how much each column lacks."""
        ax, d = self.share_ax_, len(self.shares)
        ax.bar(range(d), self.shares, width=0.72, color=MISSING)
        if d <= NUMBERED:
            for j, share in enumerate(self.shares):
                ax.annotate(
                    percent(share), (j, share), (0, 2), textcoords="offset points", ha="center", fontsize="x-small", color=ink()
                )
        ax.set(ylim=(0, 1.35 * max(self.shares.max(), 0.01)), yticks=[])
        told = "missing" if d <= NUMBERED else f"missing\n(up to {percent(self.shares.max())})"
        ax.set_ylabel(told, rotation=0, ha="right", va="center", fontsize="small")
        ax.tick_params(axis="x", labelbottom=False, length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
