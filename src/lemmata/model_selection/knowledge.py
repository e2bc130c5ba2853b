"""What an estimator knows before it is fitted: parts that were fitted already, and tables that it can reach.

A fold can be refitted without the rows it holds out and prove nothing, if the estimator knew them from elsewhere: a scaler
that was fitted to the whole table and frozen, a function that closes over one, a class that looks rows up in a global table.
Those are looked for among the parameters, the functions among these, and the methods of classes that were written for the
occasion: everything that a name in their code stands for. The search finds what is named, not what is hidden, and it cannot see
that the table itself was prepared with all rows in view.
"""

import inspect
from types import FunctionType, MethodType

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
    if id(value) in seen:
        return
    seen.add(id(value))
    if hasattr(value, "get_params") and not inspect.isclass(value):
        if any(key.endswith("_") and not key.startswith("_") for key in vars(value)):
            found.append(f"{type(value).__name__}, fitted before")
        inner = [(key, part) for key, part in vars(value).items() if not key.endswith("_")]
        if not _of_library(type(value)):
            inner += [item for cls in type(value).__mro__ if not _of_library(cls) for item in vars(cls).items()]
        for key, part in inner:
            _look(part, key, n_rows, found, seen)
    elif isinstance(value, list | tuple):
        for part in value if len(value) != n_rows else ():  # steps of a pipeline, not a table
            _look(part, name, n_rows, found, seen)
    elif isinstance(value, MethodType):
        _look(value.__self__, name, n_rows, found, seen)
        _look(value.__func__, name, n_rows, found, seen)
    elif isinstance(value, property | staticmethod | classmethod):
        _look(getattr(value, "fget", None) or getattr(value, "__func__", None), name, n_rows, found, seen)
    elif isinstance(value, FunctionType):
        for key, part in _named(value):
            _look(part, key, n_rows, found, seen)
    elif hasattr(value, "func") and hasattr(value, "args"):  # functools.partial
        for part in (value.func, *value.args, *value.keywords.values()):
            _look(part, name, n_rows, found, seen)
    elif _is_table(value, n_rows):
        found.append(f"{name or type(value).__name__}, of {n_rows} rows")


def _named(function):
    """List the values that names in a function stand for, unless a library wrote it."""
    if _of_library(function):
        return []
    try:
        names = inspect.getclosurevars(inspect.unwrap(function))
    except ValueError:  # a name that stands for nothing yet
        return []
    return [*names.nonlocals.items(), *names.globals.items()]


def _of_library(thing):
    return (getattr(thing, "__module__", None) or "").split(".")[0] in LIBRARIES


def _is_table(value, n_rows):
    shape = () if inspect.ismodule(value) or inspect.isclass(value) else getattr(value, "shape", ())
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == n_rows
