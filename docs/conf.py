import importlib
import importlib.util
import re
import sys
from pathlib import Path
from pkgutil import iter_modules

import lemmata

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

project = "lemmata"
author = "The lemmata developers"
copyright = "The lemmata developers"
version = release = lemmata.__version__
language = "en"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False
toc_object_entries_show_parents = "hide"

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what is wanted; the signatures stay readable
numpydoc_show_class_members = False  # the template of a class lists them

# Examples that need PyArrow are shown but not run where it is not installed.
RUN = r"plot_\w+\.py" + (r"|parquet_\w+\.py" if importlib.util.find_spec("pyarrow") else "")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": rf"/({RUN})$",
    "ignore_pattern": r"make_\w+\.py|__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "lemmata"
html_static_path = ["_static"]
html_css_files = ["lemmata.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "install": [], "quickstart": [], "development": []}
html_theme_options = {
    "logo": {"text": "lemmata ∎"},
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

# Names for those who write estimators; everything else is found through `__all__`.
MAKERS = {
    "lemmata.core.kernel": ["kernel"],
    "lemmata.core.iterate": ["iterate", "Run"],
    "lemmata.core.certificate": ["gap", "equi", "same", "free", "symmetric", "nonnegative", "simplex"],
    "lemmata.core.estimator": ["Estimator", "Regressor", "Classifier", "Clusterer", "Iterative", "as_output"],
    "lemmata.core.random": ["generator", "spawn"],
    "lemmata.core.threads": ["serial_blas"],
}


INNER = ("theory.bounds",)  # packages inside packages that are public


def write_api_pages():
    """Write a page for each public package, with its names as `__all__` lists them, one for makers, and an overview."""
    packages = [m.name for m in iter_modules(lemmata.__path__) if m.ispkg and m.name not in ("core", "cli")]
    top = [name for name in lemmata.__all__ if name not in packages]
    listed = {"lemmata": ("What is needed everywhere.", {"lemmata": top})}
    for name in (*packages, *INNER):
        package = importlib.import_module(f"lemmata.{name}")
        listed[package.__name__] = plain_text([package.__doc__.split("\n")[0]])[0], {package.__name__: package.__all__}
    listed["lemmata.core"] = "For those who write estimators; users need none of these.", MAKERS
    pages = {f"package-{name}.rst": _page(name, "=", *entry) for name, entry in listed.items()}
    pages["overview.txt"] = "\n".join(_page(name, "-", *entry, toctree=False) for name, entry in listed.items())
    folder = DOCS / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def _page(title, underline, first, names, toctree=True):
    listed = "\n".join(f"   ~{module}.{name}" for module, members in names.items() for name in members)
    options = ("   :toctree:\n" if toctree else "") + "   :nosignatures:\n"
    return f"{title}\n{underline * len(title)}\n\n{first}\n\n.. autosummary::\n{options}\n{listed}\n"


ITEM = re.compile(r"^(\*{0,2}\w+(?:, \w+)*) : (.*)$")
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")


def read_docstring(app, what, name, obj, options, lines):
    """Turn our docstrings, in which a word about a parameter stands where others put its type, into numpydoc's form."""
    if getattr(obj, "__module__", "").startswith("sklearn."):  # inherited, and written for scikit-learn's own pages
        first = re.sub(r":\w+:`([^<`]+?)(?: <.*?>)?`", r"\1", lines[0])
        lines[:] = [f"{plain_text([first])[0]} (From scikit-learn.)"]
        return
    out, inside, example = [], False, False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and following and set(following) == {"-"}:
            inside, example = line in SECTIONS, line == "Examples"
        item = ITEM.match(line) if inside else None
        if item:
            names = ", ".join(_escaped(word) if "*" not in word else word for word in item[1].split(", "))
            out += [item[1] if names == item[1] else names, f"    {plain_text([item[2]])[0]}"]
        else:
            out.append(line if example or line.startswith(">>>") else plain_text([line])[0])
    lines[:] = out


def plain_text(lines):
    """Escape what reStructuredText would take for markup in prose that was written for an editor."""
    return ["`".join(part if j % 2 else _escaped(part) for j, part in enumerate(line.split("`"))) for line in lines]


def _escaped(text):
    text = re.sub(r"(?<!\\)([*|])", r"\\\1", text)
    return re.sub(r"(\w)_(?!\w)", r"\1\\_", text)


def run_pages(app):
    """Run what the pages show; a page that is wrong is a warning, and `make docs` takes no warnings."""
    from check_pages import failures, pages
    from sphinx.util import logging

    for report in failures(pages()):
        logging.getLogger(__name__).warning("A page does not show what is so:\n%s", report)


write_api_pages()


def setup(app):
    """Connect the two functions above; docstrings are read before numpydoc sees them."""
    app.connect("autodoc-process-docstring", read_docstring, priority=100)
    app.connect("builder-inited", run_pages)
