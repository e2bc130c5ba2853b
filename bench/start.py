"""What a user waits for before anything happens: importing, the first fit, and the refusal of damaged files."""

import subprocess
import sys

FIRST_FIT = """
import time
from {module} import {name}
import numpy as np
from lemmata.core import blocks, iterate, persistence, threads
import sklearn.exceptions, tqdm, joblib, scipy.linalg
rng = np.random.default_rng(0)
X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
start = time.perf_counter()
{name}({options}).fit(X, y)
print(time.perf_counter() - start)
"""


def best(code: str, repeats: int = 7) -> float:
    """Run a snippet in fresh processes and return the least number it printed."""
    run = lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: E731
    return min(float(run().stdout) for _ in range(repeats))


def report() -> str:
    """Measure in fresh processes; the kernel cache is warm after the first."""
    lines = ["| what | seconds | bar |", "|---|---:|---|"]
    code = "import time; s = time.perf_counter(); import lemmata; print(time.perf_counter() - s)"
    seconds = best(code)
    lines.append(f"| `import lemmata` | {seconds:.4f} | < 0.2 {'✓' if seconds < 0.2 else '✗'} |")
    for module, name, options in (
        ("lemmata.linear_model", "LinearRegression", ""),
        ("lemmata.linear_model", "Ridge", ""),
        ("lemmata.linear_model", "PolynomialRegression", ""),
        ("lemmata.cluster", "KMeans", "3, random_state=0"),
    ):
        code = FIRST_FIT.format(module=module, name=name, options=options)
        seconds = best(code)
        lines.append(f"| first fit of {name}, 100 × 5, imports aside | {seconds:.4f} | < 0.1 {'✓' if seconds < 0.1 else '✗'} |")
    return "\n".join(lines)
