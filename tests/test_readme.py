"""What the README shows is what happens."""

import doctest
from pathlib import Path


def test_readme_examples_run():
    path = Path(__file__).parents[1] / "README.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    text = path.read_text(encoding="utf-8").replace("```", "\n")
    test = doctest.DocTestParser().get_doctest(text, {}, "README", str(path), 0)
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(test)
    assert runner.summarize(verbose=False).attempted > 8
    assert runner.failures == 0
