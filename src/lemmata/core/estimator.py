"""The base of every estimator: scikit-learn's protocol, plus `certify`, `save`, and rows in blocks.

Tables in memory go through scikit-learn's own validation; stored tables (Parquet, Dask, iterators) are checked block by
block as they are read. Either way a model sees `Blocks`.
"""

import hashlib
import json
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, validate_data

from lemmata.core.blocks import ArrayBlocks, Blocks
from lemmata.core.certificate import Certificate
from lemmata.core.data import Array, is_sparse, is_stored
from lemmata.core.iterate import Checkpoint, Run, iterate

NO_TARGET = object()  # None is a target that was forgotten, which deserves an error


class Estimator(BaseEstimator):
    """What every lemmata estimator can do beyond scikit-learn's: `certify` and `save`."""

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """Recompute, from the fitted parameters and this data alone, how good the fit is."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the model to a file that `lemmata.load` reads; the write is atomic and the file holds no code."""
        from lemmata.core.persistence import save

        save(self, path)

    def _blocks(
        self,
        X: Any,
        y: Any = NO_TARGET,
        sample_weight: Any = None,
        *,
        reset: bool,
        order: Literal["C"] | None = None,
        multi_output: bool = False,
    ) -> Blocks:
        """Validate a table (with a target, if one is given, and weights) and cut it into blocks of (X, y, weights).

        Rows of weight zero are dropped. A reset learns the number and names of the columns, otherwise they are checked.
        """
        targets: tuple[Any, ...] = () if y is NO_TARGET else (y,)
        tags = self.__sklearn_tags__()
        if is_stored(X):
            names = None if reset or not hasattr(self, "feature_names_in_") else list(self.feature_names_in_)
            blocks = Blocks.of(X, *targets, sample_weight, columns=names, allow_nan=tags.input_tags.allow_nan)
            self._check_columns(blocks, reset)
            return blocks
        options = {
            "accept_sparse": "csr" if tags.input_tags.sparse else False,
            "dtype": [np.float64, np.float32],
            "order": order,
            "ensure_all_finite": False,  # looked at below, on all threads
        }
        if targets:
            X, y = validate_data(self, X, y, reset=reset, multi_output=multi_output, y_numeric=True, **options)
            targets = (y,)
        else:
            X = validate_data(self, X, reset=reset, **options)
        weight, complete = None, True
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            present = weight > 0
            if not present.any():
                raise ValueError("Every sample weight is zero: there is no row to fit.")
            complete = bool(present.all())
            if not complete:
                X, weight = X[present], weight[present]
                targets = tuple(t[present] for t in targets)
        blocks = ArrayBlocks(X, (*targets, weight), None, None)
        blocks.complete = complete
        if not tags.input_tags.allow_nan and not np.isfinite(blocks.reduce(_total_block)):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return blocks

    def _check_columns(self, blocks: Blocks, reset: bool) -> None:
        if reset:
            self.n_features_in_ = blocks.n_columns
            if blocks.columns is not None:
                self.feature_names_in_ = np.array(blocks.columns, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif blocks.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {blocks.n_columns} features, but {type(self).__name__} is expecting {self.n_features_in_} features."
            )


class Regressor(RegressorMixin, Estimator):
    """Base of estimators that predict numbers."""


class Clusterer(ClusterMixin, Estimator):
    """Base of estimators that put rows into groups."""


def _total_block(X: Any, *aligned: Any) -> float:
    """Sum all entries: NaN and infinity survive it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float((X.data if is_sparse(X) else X).sum(dtype=np.float64))


class Iterative(CallbackSupportMixin):
    """Mixin of estimators that iterate: `verbose`, `checkpoint` and scikit-learn's callbacks, through `Fitting`."""

    max_iter: int
    verbose: int
    checkpoint: str | Path | None

    def _fitting(self, blocks: Blocks, n_runs: int = 1) -> "Fitting":
        return Fitting(self, blocks, n_runs)


class Fitting:
    """One fit of one or several runs (restarts): wires `iterate` to the estimator's parameters and callbacks.

    Leaving the `with` statement normally removes the checkpoints; leaving it by an error keeps them.
    """

    def __init__(self, estimator: Any, blocks: Blocks, n_runs: int) -> None:
        self.estimator, self.n_runs, self.run = estimator, n_runs, 0
        self.identity = _identity(estimator, blocks) if estimator.checkpoint is not None else {}
        self.checkpoints: list[Checkpoint] = []

    def __enter__(self) -> Self:
        self.root = self.estimator._init_callback_context(max_subtasks=self.n_runs)
        self.root.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self.root.call_on_fit_task_end(estimator=self.estimator)
            for checkpoint in self.checkpoints:
                checkpoint.remove()

    def iterate(
        self,
        step: Any,
        state: Any,
        *,
        tol: float,
        monotone: Literal["up", "down"] | None,
        rounding: float = 0.0,
        name: str,
        fitted: Any,
    ) -> Run:
        """Run `core.iterate` once; `fitted` turns a state into the fitted attributes that predict from it."""
        estimator = self.estimator
        watcher = _Hooks(estimator, self.root.subcontext(task_name=name, max_subtasks=estimator.max_iter), fitted)
        checkpoint = None
        if estimator.checkpoint is not None:
            path = Path(estimator.checkpoint)
            checkpoint = Checkpoint(path if self.n_runs == 1 else path.with_name(f"{path.name}.{self.run}"), self.identity)
            self.checkpoints.append(checkpoint)
        self.run += 1
        with watcher:
            return iterate(
                step,
                state,
                max_iter=estimator.max_iter,
                tol=tol,
                monotone=monotone,
                rounding=rounding,
                name=name,
                verbose=estimator.verbose,
                callbacks=[watcher],
                checkpoint=checkpoint,
            )


class _Hooks:
    """Tells scikit-learn's callbacks of every iteration of a run."""

    def __init__(self, estimator: Any, context: Any, fitted: Any) -> None:
        self.estimator, self.context, self.fitted = estimator, context, fitted

    def __enter__(self) -> Self:
        self.context.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.context.call_on_fit_task_end(estimator=self.estimator)

    def begin(self, iteration: int, state: Any) -> None:
        self.task = self.context.subcontext(task_name="iteration")
        self.task.call_on_fit_task_begin(estimator=self.estimator, reconstruction_attributes=lambda: self.fitted(state))

    def end(self, iteration: int, state: Any) -> bool:
        attributes = {"reconstruction_attributes": lambda: self.fitted(state)}
        return bool(self.task.call_on_fit_task_end(estimator=self.estimator, **attributes))


def _identity(estimator: Any, blocks: Blocks) -> dict[str, str]:
    """Say what a fit is of, so that a checkpoint of another one is refused."""
    parameters = {k: repr(v) for k, v in estimator.get_params(deep=False).items() if k not in ("checkpoint", "verbose")}
    digest = hashlib.sha256()
    for part in blocks.first():
        if part is not None:
            digest.update(np.ascontiguousarray(part.data if is_sparse(part) else part).tobytes())
    return {
        "estimator": type(estimator).__name__,
        "parameters": json.dumps(parameters, sort_keys=True),
        "rows and columns": f"{blocks.n_rows} {blocks.n_columns}",
        "first block": digest.hexdigest(),
    }


def as_output(values: Array, dtype: Any) -> Array:
    """Give results in the precision of the input: float32 in, float32 out."""
    return values.astype(dtype, copy=False)
