"""Run benchmarks and write bench/RESULTS.md: `python -m bench [family ...] [--no-memory]`."""

import argparse
import json
import platform
from datetime import date
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.harness import THREADS, Outcome, measure, run_alone

HERE = Path(__file__).parent
FAMILIES = (
    "linear_model",
    "lasso",
    "linear_classifiers",
    "svm",
    "linear_svm",
    "gaussian_process",
    "neighbors",
    "gaussian_classes",
    "naive_bayes",
    "tree",
    "forest",
    "adaboost",
    "boosting",
    "cluster",
    "kmedoids",
    "mixture",
    "mixture_missing",
    "mixture_out_of_core",
    "gibbs",
    "lda",
    "lda_gibbs",
    "decomposition",
    "nmf",
    "recommend",
    "neural_network",
    "generative",
    "rl",
    "rl_learning",
    "hmm",
    "long_sequence",
    "markov",
    "state_space",
    "semi_supervised",
    "graphical",
    "sampling",
    "factor_gibbs",
    "decision",
    "association",
    "coverage",
    "bootstrap",
    "select_order",
    "out_of_core",
    "start",
)
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "scikit-learn-intelex",
    "lightgbm",
    "xgboost-cpu",
    "celer",
    "kmedoids",
    "hmmlearn",
    "pykalman",
    "statsmodels",
    "pyagrum",
    "pgmpy",
    "emcee",
    "tomotopy",
    "implicit",
    "scikit-surprise",
    "torch",
    "quantecon",
    "pyfim",
    "mlxtend",
    "gymnasium",
    "pyarrow",
)


def machine() -> str:
    """Say on what and with which versions the figures were measured."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
            break
    return f"{date.today()}, {cpu}, {THREADS} threads, Python {platform.python_version()}, {', '.join(found)}"


def table(outcomes: list[Outcome]) -> str:
    """Write outcomes as a Markdown table."""
    lines = ["| what | who | seconds | ratio | bar | same objective | peak MiB |", "|---|---|---:|---:|---:|---|---:|"]
    for o in outcomes:
        ratio = "" if o.ratio is None else f"{o.ratio:.2f}×"
        bar = "" if o.bar is None else f"{o.bar:g}× {'✓' if o.ratio is not None and o.ratio >= o.bar else '✗'}"
        same = "" if o.contender == "lemmata" else "yes" if o.agrees else f"no ({o.objective:.10g})"
        memory = "" if o.megabytes != o.megabytes else f"{o.megabytes:.0f}"
        lines.append(f"| {o.row} | {o.contender} | {o.seconds:.4g} | {ratio} | {bar} | {same} | {memory} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("family", nargs="*", choices=[*FAMILIES, []], help="default: all")
    parser.add_argument("--no-memory", action="store_true", help="skip the runs that measure memory")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        family, name, contender = json.loads(arguments.alone)
        row = next(row for row in import_module(f"bench.{family}").ROWS if row.name == name)
        print(run_alone(row, contender))
        return
    for family in arguments.family or FAMILIES:
        module = import_module(f"bench.{family}")
        if hasattr(module, "report"):
            body = module.report()
        else:
            body = table([o for row in module.ROWS for o in measure(family, row, not arguments.no_memory)])
        print(f"\n## {family}\n\n{body}", flush=True)
        write(family, f"{machine()}\n\n{body}")


def write(family: str, body: str) -> None:
    """Put a family's figures into RESULTS.md, leaving the others as they were measured."""
    path = HERE / "RESULTS.md"
    sections = {}
    for part in path.read_text(encoding="utf-8").split("\n## ")[1:] if path.exists() else ():
        name, _, rest = part.partition("\n")
        sections[name.strip()] = rest.strip()
    sections[family] = body
    ordered = [f"## {name}\n\n{sections[name]}\n" for name in FAMILIES if name in sections]
    head = (
        "# Measured\n\nWritten by `make bench`. Ours and the peers run in one process, in turns, the best of several counts; "
        "ratio = peer's time over ours. Memory is the peak of a process of its own, data included.\n"
    )
    path.write_text("\n".join([head, *ordered]), encoding="utf-8")


if __name__ == "__main__":
    main()
