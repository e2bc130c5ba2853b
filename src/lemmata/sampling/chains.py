"""Chains in parallel: the one driver of all samplers, and `chains` for a sampler of one's own.

Chains are advanced a stretch at a time, each by its own generators, so that neither the number of threads nor the lengths of
the stretches change a bit. A stretch takes a fraction of a second: then progress is shown, and Ctrl-C keeps what all chains
have drawn so far.
"""

import time
import warnings
from contextlib import nullcontext

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core import config, threads
from lemmata.core.config import whole
from lemmata.core.random import generator, spawn
from lemmata.sampling.draws import Draws

SHORT, LONG = 0.1, 0.4  # seconds that a stretch should take


def advance_all(advance, tasks, n_draws, *, name, verbose=0, parallel=True, first=16, keep=True):
    """Call advance(task, first, last) for stretches of draws until there are n_draws; return how many there are.

    Parameters
    ----------
    parallel : Whether tasks may run at the same time, on threads.
    first : Draws of the first stretch.
    keep : Whether Ctrl-C keeps what was drawn, with a warning, or is passed on.

    Examples
    --------
    >>> drawn = np.zeros((2, 100))
    >>> def advance(task, first, last):
    ...     drawn[task, first:last] = task
    >>> advance_all(advance, range(2), 100, name="example")
    100
    """
    n_threads = min(config.n_threads(), len(tasks)) if parallel else 1
    done, length = 0, first
    with _bar(n_draws, name) if verbose else nullcontext() as bar:
        try:
            while done < n_draws:
                last, began = min(done + length, n_draws), time.perf_counter()
                threads.run(lambda task, done=done, last=last: advance(task, done, last), tasks, n_threads)
                drawn, done, passed = last - done, last, time.perf_counter() - began
                length = length * 2 if passed < SHORT else max(length // 2, 1) if passed > LONG else length
                if bar is not None:
                    bar.update(drawn)
        except KeyboardInterrupt:
            if done == 0 or not keep:
                raise
            message = f"{name} was interrupted after {done} of {n_draws} draws a chain: these are kept."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return done


def warmup_length(warmup, default):
    """Give the length of a warm-up, a whole number of at least 0.

    Examples
    --------
    >>> warmup_length(None, 500), warmup_length(0, 500)
    (500, 0)
    """
    if warmup is None:
        return default
    if isinstance(warmup, bool) or not isinstance(warmup, int | np.integer) or warmup < 0:
        raise ValueError(f"warmup must be a whole number of at least 0, got {warmup!r}.")
    return int(warmup)


def several(start, n_chains):
    """Tell whether a start is a list of starts, one for each chain; refuse another number of them.

    Examples
    --------
    >>> several([0.0, 1.0], 3), several([{"a": 0.0}, {"a": 1.0}], 2)
    (False, True)
    """
    if not (isinstance(start, list | tuple) and len(start)) and not (isinstance(start, np.ndarray) and start.ndim > 1):
        return False
    if not isinstance(start[0], dict | list | tuple) and np.ndim(start[0]) == 0:
        return False
    if len(start) != n_chains:
        raise ValueError(f"start must be one for all chains, or one for each of {n_chains}; there are {len(start)}.")
    return True


def scanning(scan):
    """Read the name of a scan: whether it is random.

    Examples
    --------
    >>> scanning("systematic")
    False
    """
    if scan not in ("systematic", "random"):
        raise ValueError(f'scan must be "systematic" or "random", got {scan!r}.')
    return scan == "random"


def _bar(total, name):
    from tqdm import tqdm

    return tqdm(total=total, desc=name, unit="draws")


def chains(sampler, n_chains=4, random_state=None, *, names=None):
    """Run a sampler several times at once, each with a generator of its own, and put the draws together.

    Parameters
    ----------
    sampler : Function of a `numpy.random.Generator` that gives draws (draws, dimensions) or (draws,), or a pair of these and
        their log densities. It runs on several threads at the same time. R-hat sees most if it begins at a point of its own.
    n_chains : How many times it runs.
    names : Names of the dimensions. Default: x, or x[0], x[1], …

    Examples
    --------
    >>> def walk(rng):
    ...     x, drawn = 0.0, []
    ...     for _ in range(2000):
    ...         x = 0.5 * x + rng.normal()
    ...         drawn.append(x)
    ...     return drawn
    >>> draws = chains(walk, random_state=0)
    >>> draws, draws.std().round(1)
    (<Draws: 4 chains × 2000 draws of x>, array([1.2]))
    """
    if not callable(sampler):
        raise ValueError(f"sampler must be a function of a generator, got {type(sampler).__name__}.")
    n_chains = whole("n_chains", n_chains)
    rngs, found = spawn(generator(random_state), n_chains), [None] * n_chains

    def work(chain):
        drawn = sampler(rngs[chain])
        values, logs = drawn if isinstance(drawn, tuple) else (drawn, None)
        values = np.asarray(values)
        found[chain] = values[:, None] if values.ndim == 1 else values, logs

    threads.run(work, range(n_chains), min(config.n_threads(), n_chains))
    if len({values.shape for values, _ in found}) > 1:
        raise ValueError(f"The chains gave different shapes: {[values.shape for values, _ in found]}; they must be equal.")
    logs = None if found[0][1] is None else np.stack([logs for _, logs in found])
    return Draws(np.stack([values for values, _ in found]), logs, names=names)
