"""Numbers that are read without thinking, beside a logarithmic axis and elsewhere."""

from typing import Any

import numpy as np

FEW_DECADES = 3.5  # up to which there is room for 1, 2 and 5 of each


def round_ticks(axis: Any, low: float, high: float) -> None:
    """Put round numbers on a logarithmic axis from low to high: 1/20, 1/5, 1, 20, 5,000; powers of ten alone if it is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    short = np.log10(high / low) <= FEW_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())


def plain(value: float) -> str:
    """Write a round number as one says it.

    >>> plain(0.05), plain(2.0), plain(5000.0), plain(1e6)
    ('1/20', '2', '5,000', '1 million')
    """
    if value >= 1e6:
        return f"{value / 1e6:,.0f} million"
    return f"{value:,.0f}" if value >= 1 else f"1/{1 / value:,.0f}"


def readable(x: float, digits: int = 4) -> str:
    """Write a number in about so many digits, without powers of ten where it can do without.

    >>> [readable(x) for x in (0.8, -0.00376123, 152.133, 1083.4, 2.4e9, 3e-7, 0.0)]
    ['0.8', '-0.003761', '152.1', '1,083', '2.4e+09', '3e-07', '0']
    """
    if not 1e-4 <= abs(x) < 1e7:
        return f"{x:.{digits}g}"
    places = max(digits - 1 - int(np.floor(np.log10(abs(x)))), 0)
    text = f"{x:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
