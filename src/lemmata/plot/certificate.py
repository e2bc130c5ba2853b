"""A certificate as a picture: how far each recomputed number stays below its limit, in powers of ten."""

from typing import Any, Self

import numpy as np

from lemmata.core.certificate import Certificate
from lemmata.plot.drawing import KIND_COLORS, NEUTRAL, REFUSED, axes

ROOM = 30.0  # factor left free beside the smallest and the largest number, about a decade and a half


class CertificateDisplay:
    """Each check of a certificate: a bar up to its limit and a mark at its value, in the color of its kind.

    Parameters
    ----------
    certificate : What `certify` returned.
    name : What to write above the plot; default the certificate's verdict.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata import Check
    >>> certificate = Certificate(Check("gap", 2e-12, 1e-6, "proof", "nothing fits better by more"))
    >>> display = CertificateDisplay(certificate).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['gap']
    """

    def __init__(self, certificate: Certificate, *, name: str | None = None) -> None:
        self.certificate = certificate
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, name: str | None = None) -> Self:
        """Certify a fitted estimator on the data it was fitted to, and plot the certificate."""
        return cls(estimator.certify(X, y), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw one line for each check, the first on top."""
        from matplotlib.ticker import LogLocator

        checks = self.certificate.checks
        ax = axes(ax, (5.6, 1.2 + 0.36 * max(len(checks), 1)))  # inches: head and axis, then a line for each check
        left, right = _range([c.value for c in checks] + [c.limit for c in checks])
        for row, check in enumerate(checks):
            color = KIND_COLORS[check.kind]
            limit = min(check.limit, right) if check.limit > 0 else left
            ax.barh(row, limit - left, left=left, height=0.5, color=color, alpha=0.18)
            if np.isfinite(check.limit):
                ax.plot([limit, limit], [row - 0.25, row + 0.25], color=color, lw=1.5)
            # Zero has no logarithm and NaN no place: they stand at the edge on their side of every limit.
            value = float(np.clip(np.nan_to_num(check.value, nan=np.inf), left, right))
            ax.plot(value, row, "o" if check.holds else "X", ms=8, color=color if check.holds else REFUSED, clip_on=False)
            ax.text(1.02, row, f"{check.value:.1e}", transform=ax.get_yaxis_transform(), va="center", fontsize="small")
        ax.set(xscale="log", xlim=(left, right), ylim=(len(checks) - 0.4, -0.6), xlabel="value (mark) and limit (end of bar)")
        ax.xaxis.set_major_locator(LogLocator(numticks=6))  # labels with exponents are wide
        ax.set_yticks(range(len(checks)), [check.name for check in checks])
        verdict = f"holds ({self.certificate.kind})" if self.certificate.holds else "is refused"
        ax.set_title(f"certificate {verdict}" if self.name is None else self.name)
        self._legend(ax)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0, pad=8)  # points; room for a mark at the edge
        ax.grid(axis="x", color=NEUTRAL, alpha=0.25, lw=0.6)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Any) -> None:
        from matplotlib.patches import Patch

        kinds = [kind for kind in KIND_COLORS if any(check.kind == kind for check in self.certificate.checks)]
        handles = [Patch(color=KIND_COLORS[kind], alpha=0.6, label=kind) for kind in kinds]
        ax.legend(
            handles=handles, frameon=False, fontsize="small", ncols=len(kinds) or 1, loc="lower right", bbox_to_anchor=(1, 1)
        )


def _range(numbers: list[float]) -> tuple[float, float]:
    """Return the ends of an axis that shows all positive finite numbers."""
    shown = [x for x in numbers if np.isfinite(x) and x > 0] or [1.0]
    return min(min(shown), 1e-16) / ROOM if min(shown) < 1e-14 else min(shown) / ROOM, max(shown) * ROOM
