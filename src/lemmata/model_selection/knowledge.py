"""What an estimator knows before it is fitted: parts that were fitted already, and tables that it can reach.

A fold can be refitted without the rows it holds out and prove nothing, if the estimator knew them from elsewhere: a scaler
that was fitted to the whole table and frozen, a function that closes over one, a class that looks rows up in a global table.
Those are looked for among the parameters, the functions and objects among these, and the classes that were written for the
occasion: whatever they keep, have by default, or name in their code. The search finds what is named, not what is hidden, and it
cannot see that the table itself was prepared with all rows in view.
"""

import inspect
import sys
from collections.abc import Mapping
from dis import get_instructions
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType

LIBRARIES = ("lemmata", "sklearn", "numpy", "scipy", "builtins")  # their methods look nothing up behind our back


def knowledge(estimator, n_rows):
    """Name what an unfitted estimator knows: fitted parts, and arrays or frames with as many rows as the table.

    Examples
    --------
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.pipeline import make_pipeline
    >>> from lemmata.decomposition import PCA
    >>> from lemmata.linear_model import Ridge
    >>> X = [[0.0, 1.0], [2.0, 0.0], [1.0, 5.0]]
    >>> knowledge(make_pipeline(PCA(1), Ridge()), 3), knowledge(make_pipeline(FrozenEstimator(PCA(1).fit(X)), Ridge()), 3)
    ([], ['PCA, fitted before'])
    """
    found, seen = [], set()
    _look(estimator, "", n_rows, found, seen)
    return sorted(set(found))


def _look(value, name, n_rows, found, seen):
    """Go through a value and all that it names, each once."""
    if id(value) in seen or inspect.ismodule(value):
        return
    seen.add(id(value))
    if _is_table(value, n_rows):
        found.append(f"{name or type(value).__name__}, of {n_rows} rows")
    elif hasattr(value, "get_params") and not inspect.isclass(value):
        learned = {key for key in vars(value) if key.endswith("_")} - set(value.get_params(deep=False))
        if any(not key.startswith("_") for key in learned):
            found.append(f"{type(value).__name__}, fitted before")
        inner = [(key, part) for key, part in vars(value).items() if key not in learned]
        for key, part in inner + _written(type(value)):
            _look(part, key, n_rows, found, seen)
    elif isinstance(value, list | tuple):
        for part in value if len(value) != n_rows else ():  # steps of a pipeline, not a table
            _look(part, name, n_rows, found, seen)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            _look(part, str(key), n_rows, found, seen)
    elif isinstance(value, MethodType):
        _look(value.__self__, name, n_rows, found, seen)
        _look(value.__func__, name, n_rows, found, seen)
    elif isinstance(value, property | staticmethod | classmethod):
        _look(getattr(value, "fget", None) or getattr(value, "__func__", None), name, n_rows, found, seen)
    elif isinstance(value, FunctionType):
        _look_at_named(_named(value), n_rows, found, seen)
    elif hasattr(value, "func") and hasattr(value, "args"):  # functools.partial
        for part in (value.func, *value.args, *value.keywords.values()):
            _look(part, name, n_rows, found, seen)
    elif hasattr(value, "__wrapped__"):  # functools.cache
        _look(value.__wrapped__, name, n_rows, found, seen)
    elif inspect.isclass(value):
        _look_at_named(_written(value), n_rows, found, seen)
    elif not _of_library(type(value)):
        _look_at_named([*getattr(value, "__dict__", {}).items(), *_written(type(value))], n_rows, found, seen)


def _look_at_named(items, n_rows, found, seen):
    """Look at what code names, where a list with an entry for each row is a table too."""
    for key, part in items:
        if isinstance(part, list | tuple | Mapping) and len(part) == n_rows:
            found.append(f"{key}, of {n_rows} rows")
        else:
            _look(part, key, n_rows, found, seen)


def _written(cls):
    """List what stands in a class and its parents, but for those of libraries."""
    return [item for parent in cls.__mro__ if not _of_library(parent) for item in vars(parent).items()]


def _named(function):
    """List the values that names in a function stand for, and its defaults, unless a library wrote it."""
    if _of_library(function):
        return []
    function = inspect.unwrap(function)
    found = [("a default", value) for value in function.__defaults__ or ()] + list((function.__kwdefaults__ or {}).items())
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # a name that stands for nothing yet
            continue
    names = dict.fromkeys(_names_in(function.__code__))
    return found + [(name, function.__globals__[name]) for name in names if name in function.__globals__]


def _names_in(code):
    """List the global names in compiled code, and in the functions and comprehensions within; attributes are none."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names_in(part)]
    return [step.argval for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"] + inner


def _of_library(thing):
    """Tell whether somebody else wrote a class or function: it belongs to a package that was installed."""
    name = (getattr(thing, "__module__", None) or "").split(".")[0]
    if name in LIBRARIES or name in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return bool({"site-packages", "dist-packages"} & set(PurePath(file).parts))


def _is_table(value, n_rows):
    shape = () if inspect.isclass(value) else getattr(value, "shape", ())
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == n_rows
