"""Run everything that the pages show: Python after `>>>`, and the command line in `console` blocks.

A page runs top to bottom, in a folder of its own that is thrown away. Output must be what the page shows, but for numbers
below 1e-6 (rounding, which differs between machines) and for times. A page that begins with the comment `.. needs: a, b` is
left out where one of these modules is not installed.

Run `python docs/check_pages.py` for all pages, or give the paths of some. The documentation cannot be built while a page is
wrong: `conf.py` runs this too.
"""

import doctest
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

DOCS = Path(__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROUNDING = re.compile(r"\b(?:\d\.\de-(?:0[7-9]|[1-9]\d)|0\.0e\+00)\b")
CONSOLE = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", re.MULTILINE)
TIME = re.compile(r"\b\d+(?:\.\d+)? m?s\b")


class Checker(doctest.OutputChecker):
    """Compares text, taking one rounding error for another and any time for any other."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Tell whether the output is what the page shows."""
        return super().check_output(_plain(want), _plain(got), optionflags)


def _plain(text: str) -> str:
    return TIME.sub("<time>", ROUNDING.sub("<rounding>", text))


def shell(command: str, show: bool = True) -> None:
    """Run a command as the reader would, in a terminal of 110 columns without colors."""
    here = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "110",
        "NO_COLOR": "1",
    }
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=here, check=False)
    lines = [line.rstrip() for line in (done.stdout + done.stderr).strip("\n").split("\n")]
    if (show or done.returncode) and any(lines):
        print("\n".join(lines))


def with_commands(text: str) -> str:
    """Rewrite `console` blocks as calls of `shell`, so that one run has both in their order; a line "…" is any output."""
    return CONSOLE.sub(lambda block: "".join(_calls(block[1])), text)


def _calls(block: str) -> Iterator[str]:
    for part in re.split(r"^   \$ ", block, flags=re.MULTILINE)[1:]:
        command, *output = part.rstrip().split("\n")
        elided = [line.strip() for line in output] == ["…"]
        yield f"   >>> shell({command!r}{', show=False' if elided else ''})\n"
        yield "".join(f"{line}\n" if line.strip() else "   <BLANKLINE>\n" for line in output if not elided)
        yield "\n"


def failures(paths: list[Path]) -> Iterator[str]:
    """Run pages (and Python files, by their docstrings) and yield the report of each that is wrong."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        needs = re.match(r"\.\. needs: (.+)", text)
        missing = [m for m in re.split(r", *", needs[1]) if importlib.util.find_spec(m) is None] if needs else []
        if missing:
            print(f"{path.name}: not run, because {missing[0]} is not installed")
            continue
        report: list[str] = []
        runner = doctest.DocTestRunner(checker=Checker(), optionflags=FLAGS)
        if path.suffix == ".py":
            names = runpy.run_path(str(path), run_name=path.stem)
            own = [value for value in names.values() if getattr(value, "__module__", None) == path.stem]
            finder = doctest.DocTestFinder()
            tests = [test for value in own for test in finder.find(value, globs=dict(names), module=False)]
        else:
            tests = [doctest.DocTestParser().get_doctest(with_commands(text), {"shell": shell}, path.name, str(path), 0)]
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for test in tests:
                    runner.run(test, out=report.append)
            finally:
                os.chdir(before)
        if report:
            yield "".join(report)


def pages() -> list[Path]:
    """List the pages that are written by hand, and the skeleton."""
    made = ("_build", "auto_examples", "generated")
    return [*sorted(p for p in DOCS.rglob("*.rst") if not set(made) & set(p.parts)), DOCS / "skeleton.py"]


def report_of(path: Path) -> str:
    """Run one page; return what is wrong with it."""
    return "".join(failures([path]))


if __name__ == "__main__":
    paths = [Path(argument).resolve() for argument in sys.argv[1:]] or pages()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # each page has a folder of its own
        found = [report for report in pool.map(report_of, paths) if report]
    print("\n".join(found) or "every page shows what is so")
    sys.exit(bool(found))
