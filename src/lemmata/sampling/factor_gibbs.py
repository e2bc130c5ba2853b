"""Gibbs sampling on factor graphs and Bayes nets: one variable after the other, given all others.

    x_k ~ (1/Z') Π_{m in M(k)} f_m(x_k, the states of its neighbors)

`graphical.gibbs_program` has the conditionals and what is to be said of them. Chains begin independently, at states with a
probability above zero, and run on threads; the same seed gives the same bits for any number of threads.

`gibbs_marginals` averages conditionals instead of states (Rao-Blackwell), stores no draws, and takes its standard errors from
the means of long batches, which are nearly independent where states that follow each other are not.

References: Geman & Geman, IEEE Transactions on Pattern Analysis and Machine Intelligence, 1984; Gelfand & Smith, Journal of the
American Statistical Association, 1990; Flegal & Jones, Annals of Statistics, 2010 (batch means).
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import f as f_distribution
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.certificate import Certificate, Check
from lemmata.core.config import whole
from lemmata.core.random import generator, spawn
from lemmata.graphical.evidence import encode_evidence, some
from lemmata.graphical.gibbs_program import SiteProgram, chains
from lemmata.sampling.chains import advance_all, scanning, several, warmup_length
from lemmata.sampling.draws import Draws

ROUNDING = 1e-12  # what sums of some thousand probabilities may lose
DOUBT = 1e-3  # chance of a false alarm that chains disagree
WORTH_THREADS = 100_000  # draws of single variables for which starting threads pays


class Marginals(NamedTuple):
    """Give estimates of the probabilities of all states of all variables, and how far off they may be.

    Attributes
    ----------
    probabilities, standard_errors : {variable: one number for each of its states}.
    agree : Whether the chains agree with each other as far as their spread within allows: no proof that they have converged.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> found = gibbs_marginals(FactorGraph([("ab", [[3, 1], [1, 2]])]), random_state=0)
    >>> found.probabilities["a"].shape, found.agree
    ((2,), True)
    """

    probabilities: dict
    standard_errors: dict
    agree: bool


def enter(model, evidence):
    """Put evidence into the layout of a model: (layout, codes), clamped variables by their codes, soft evidence as factors."""
    layout = model.layout
    codes = np.full(len(layout.cards), -1, dtype=np.int64)
    numbers, starts, likelihood = encode_evidence(model, evidence)
    soft = []
    for i, v in enumerate(numbers):
        values = likelihood[starts[i] : starts[i + 1]]
        if np.count_nonzero(values) == 1:
            codes[v] = np.argmax(values)
        else:
            soft.append((v, values))
    if soft:
        scopes, tables = np.array([v for v, _ in soft]), [values for _, values in soft]
        layout = layout._replace(
            scope_starts=np.r_[layout.scope_starts, layout.scope_starts[-1] + 1 + np.arange(len(soft))],
            scopes=np.r_[layout.scopes, scopes],
            table_starts=np.r_[layout.table_starts, layout.table_starts[-1] + np.cumsum([len(t) for t in tables])],
            tables=np.concatenate([layout.tables, *tables]),
        )
    return layout, codes


def compiled(model, evidence, blocks=None):
    """Compile a model with evidence: by single variables, or by blocks of their names ("trees": blocks are found)."""
    layout, codes = enter(model, evidence)
    if blocks is None:
        return SiteProgram(layout, codes, model.variables)
    from lemmata.sampling.block_gibbs import BlockProgram  # which needs this file

    if isinstance(blocks, str):
        if blocks != "trees":
            raise ValueError(f'blocks must be lists of variables, or "trees", got {blocks!r}.')
        return BlockProgram(layout, None, codes, model.variables)
    number = {name: i for i, name in enumerate(model.variables)}
    for block in blocks:
        if isinstance(block, str) and len(block) > 1 and block in number:
            raise ValueError(f"A block is a list of variables, and {block!r} is one name: write [{block!r}].")
    unknown = [name for block in blocks for name in block if name not in number]
    if unknown:
        raise ValueError(f"A block names {unknown[0]!r}, which is no variable of this model.")
    return BlockProgram(layout, [[number[name] for name in block] for block in blocks], codes, model.variables)


def begin(program, model, evidence, n_chains, start, random_state):
    """Start chains, and say so if they cannot come from every possible state to every other."""
    classes = program.classes()
    if classes is None:
        warnings.warn(
            "Some factors are zero, and the graph is too large to see whether the chains can come from every possible state to "
            "every other: compare several starts, use blocks that hold such factors, or sample from the junction tree.",
            ConvergenceWarning,
            stacklevel=4,
        )
    elif classes > 1:
        raise ValueError(
            f"The possible states fall into {classes} classes that these moves never leave, because some factors are zero, so "
            "the draws would depend on the start: use block_gibbs with blocks that hold such factors, or model.sample."
        )
    rng = generator(random_state)
    if callable(start):
        start = [start(child) for child in spawn(rng, n_chains)]
    start = _numbers(program, model, start, n_chains)
    if start is None and not program.positive:
        try:
            return chains(program, n_chains, rng)
        except ValueError:  # where fillings fail, the junction tree may not
            try:
                start = model.junction_tree().sample(n_chains, rng, evidence)
            except (ValueError, MemoryError):
                start = None
    return chains(program, n_chains, rng, start)


def _numbers(program, model, start, n_chains):
    """Give a start, a dict or a sequence or one of these for each chain, as numbers of states."""
    if start is None:
        return None
    if isinstance(start, dict):
        known = {model.variables[v]: int(program.codes[v]) for v in np.flatnonzero(program.codes >= 0)}
        strangers = [name for name in start if name not in model.states]
        missing = [name for name in model.variables if name not in start and name not in known]
        if strangers or missing:
            told = f"has none for {some(missing)}" if missing else f"names {some(strangers)}, which the model does not have"
            raise ValueError(f"start must have a state for every variable, and {told}.")
        start = [model._code(name, start[name]) if name in start else known[name] for name in model.variables]
    if several(start, n_chains):
        return [_numbers(program, model, one, n_chains) for one in start]
    x, codes, cards = np.asarray(start), program.codes, program.layout.cards
    if x.shape != codes.shape or x.dtype.kind not in "biu":
        raise ValueError(f"start must hold {len(codes)} numbers of states for each chain, or labels by name, got {start!r}.")
    wrong = (x < 0) | (x >= cards)
    if wrong.any():
        v = int(np.argmax(wrong))
        raise ValueError(f"start gives {model.variables[v]!r} the state number {x[v]}; its states are 0 to {cards[v] - 1}.")
    wrong = (codes >= 0) & (x != codes)
    if wrong.any():
        v = int(np.argmax(wrong))
        name = model.variables[v]
        one, other = model.states[name][x[v]], model.states[name][codes[v]]
        raise ValueError(f"start gives {name!r} the state {one!r}, and the evidence says {other!r}.")
    return x


def warm_up(program, tasks, n_sweeps, random_scan, verbose):
    """Sweep, without keeping anything, a short while at a time: Ctrl-C is heard in between."""

    def advance(chain, first, last):
        x, state = tasks[chain]
        program.run(x, state, last - first, random_scan)

    parallel = n_sweeps * len(program.free) >= WORTH_THREADS
    advance_all(advance, range(len(tasks)), n_sweeps, name="warm-up", verbose=verbose, parallel=parallel, keep=False)


def draw(program, model, n_draws, evidence, n_chains, warmup, thin, scan, start, random_state, verbose):
    """Run chains of a compiled program and keep their draws."""
    n_draws, n_chains, thin = whole("n_draws", n_draws), whole("n_chains", n_chains), whole("thin", thin)
    random_scan, warmup = scanning(scan), warmup_length(warmup, n_draws * thin // 2)
    tasks = begin(program, model, evidence, n_chains, start, random_state)
    warm_up(program, tasks, warmup, random_scan, verbose)
    states = np.empty((n_chains, n_draws, len(model.variables)), dtype=np.int32)
    logs = np.empty((n_chains, n_draws))

    def advance(chain, first, last):
        x, state = tasks[chain]
        program.record(x, state, thin, random_scan, states[chain, first:last], logs[chain, first:last])

    options = {"verbose": verbose, "parallel": n_draws * thin * len(program.free) >= WORTH_THREADS, "first": max(16 // thin, 1)}
    done = advance_all(advance, range(n_chains), n_draws, name="Gibbs sampling", **options)
    return Draws(states[:, :done], logs[:, :done], names=model.variables)


def gibbs_on_factors(
    model,
    n_draws=1000,
    *,
    evidence=None,
    n_chains=4,
    warmup=None,
    thin=1,
    scan="systematic",
    start=None,
    random_state=None,
    verbose=0,
):
    """Draw states of all variables of a model given evidence, by Gibbs sampling of one variable at a time.

    Where factors have zeros, single variables may be unable to leave a part of the possible states. On small graphs this is
    found out and refused, on large ones there is a warning; `block_gibbs` or the model's own `sample` may help.

    Parameters
    ----------
    model : `FactorGraph` or `BayesNet`.
    n_draws : Draws that each chain keeps.
    evidence : {variable: label or number of its state, or likelihoods of its states}.
    n_chains : Chains, which run on threads.
    warmup : Sweeps before the first draw. Default: half as many as follow.
    thin : Sweeps for each draw.
    scan : "systematic" draws all variables in their order in each sweep, "random" as many, each chosen at random.
    start : {variable: label}, or numbers of states (n_variables,); or one of these for each chain; or a function of a generator
        that gives one. Default: at random, a start for each chain.
    verbose : 1 shows a progress bar.

    Returns
    -------
    Draws of the numbers of states (chains × draws × variables), with the log of the product of all factors at each.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
    >>> draws = gibbs_on_factors(graph, 5000, evidence={"c": 0}, random_state=0)
    >>> draws.mean().round(2), graph.marginals({"c": 0})["a"][1].round(2)
    (array([0.36, 0.27, 0.  ]), np.float64(0.36))
    """
    program = compiled(model, evidence)
    return draw(program, model, n_draws, evidence, n_chains, warmup, thin, scan, start, random_state, verbose)


def gibbs_marginals(
    model,
    n_sweeps=1000,
    *,
    evidence=None,
    blocks=None,
    n_chains=4,
    warmup=None,
    n_batches=20,
    scan="systematic",
    start=None,
    random_state=None,
    verbose=0,
):
    """Estimate the probabilities of all states given evidence by averages of conditionals, without keeping draws.

    Parameters
    ----------
    model : `FactorGraph`, `BayesNet` or another discrete model.
    n_sweeps : Sweeps of each chain, rounded up to a multiple of n_batches.
    evidence : {variable: label or number of its state, or likelihoods of its states}.
    blocks : None draws single variables; lists of variables, or "trees", as in `block_gibbs`.
    n_chains : Chains, which run on threads. One alone cannot disagree.
    warmup : Sweeps before those that count. Default: n_sweeps / 2.
    n_batches : Batches of each chain, whose means tell the standard errors; each should be longer than the chain's memory.
    scan : "systematic" draws all variables in their order in each sweep, "random" as many, each chosen at random.
    start : {variable: label}, or numbers of states (n_variables,); or one of these for each chain; or a function of a generator
        that gives one. Default: at random, a start for each chain.
    random_state : Seed or generator.
    verbose : 1 shows a progress bar. Ctrl-C keeps the batches that are complete.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
    >>> found = gibbs_marginals(graph, 4000, random_state=0)
    >>> error = found.probabilities["a"] - graph.marginals()["a"]
    >>> found.agree, bool((abs(error) < 4 * found.standard_errors["a"]).all())
    (True, True)
    """
    n_sweeps, n_chains, n_batches = whole("n_sweeps", n_sweeps), whole("n_chains", n_chains), whole("n_batches", n_batches)
    if n_batches < 2:
        raise ValueError(f"n_batches must be at least 2, got {n_batches}: the spread of batches tells the standard error.")
    random_scan, warmup, length = scanning(scan), warmup_length(warmup, n_sweeps // 2), -(-n_sweeps // n_batches)
    program = compiled(model, evidence, blocks)
    sites = program if blocks is None else SiteProgram(program.layout, program.codes, program.names)
    tasks = begin(program, model, evidence, n_chains, start, random_state)
    warm_up(program, tasks, warmup, random_scan, verbose)
    sizes = program.layout.cards[program.free]
    sums, means, squares = np.zeros((3, n_chains, int(sizes.sum())))
    batches = np.zeros(n_chains, dtype=np.int64)  # complete ones; after Ctrl-C, chains may differ

    def advance(chain, first, last):
        x, state = tasks[chain]
        while first < last:  # no further than to the end of a batch
            end = min(last, (first // length + 1) * length)
            program.average(x, state, end - first, random_scan, sites, sums[chain])
            first = end
            if end % length == 0:
                off = sums[chain] / length - means[chain]
                batches[chain] += 1
                means[chain] += off / batches[chain]
                squares[chain] += off * (sums[chain] / length - means[chain])
                sums[chain] = 0.0

    options = {"verbose": verbose, "parallel": n_sweeps * len(program.free) >= WORTH_THREADS}
    advance_all(advance, range(n_chains), n_batches * length, name="Gibbs sampling", **options)
    if batches.min() < 2:
        raise KeyboardInterrupt("fewer than two batches of each chain were complete: there is nothing to estimate from")
    share, total = batches[:, None] / batches.sum(), int(batches.sum())
    mean, within = (share * means).sum(axis=0), squares.sum(axis=0)
    between = (batches[:, None] * (means - mean) ** 2).sum(axis=0)
    errors = np.sqrt((within + between) / (total - 1) / total)
    return Marginals(*_named(model, program, sizes, mean, errors), _agree(within, between, n_chains, total))


def _agree(within, between, n_chains, total):
    """Whether chains differ no more than their batches make likely, for all states at once; warn if they do."""
    if n_chains == 1:
        return True
    moved = between > ROUNDING**2
    freedom = n_chains - 1, total - n_chains
    limit = f_distribution.isf(DOUBT / max(len(within), 1), *freedom)
    agree = bool((between[moved] / freedom[0] <= limit * within[moved] / freedom[1]).all())
    if not agree:
        warnings.warn(
            "The chains tell different stories: these are not yet probabilities. Raise n_sweeps, or draw blocks.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return agree


def _named(model, program, sizes, mean, errors):
    """Give numbers of the free variables by name, and those that are known."""
    known = {
        name: np.eye(card)[code]
        for name, card, code in zip(model.variables, program.layout.cards, program.codes, strict=True)
        if code >= 0
    }
    free = [model.variables[v] for v in program.free]
    for flat, of_known in ((mean, known), (errors, {name: np.zeros(len(p)) for name, p in known.items()})):
        found = of_known | dict(zip(free, np.split(flat, np.cumsum(sizes)[:-1]), strict=True)) if free else of_known
        yield {name: found[name] for name in model.variables}


def certify_gibbs(model, *, evidence=None, blocks=None, scan="systematic"):
    """Prove, on a small model, that sweeps leave its distribution as it is, and that they lead to it from everywhere.

    The transition matrix is put together from the conditionals that the compiled sweeps draw from.

    Parameters
    ----------
    model : `FactorGraph`, `BayesNet` or another discrete model.
    evidence : {variable: label or number of its state, or likelihoods of its states}.
    blocks : None for single variables; lists of variables, or "trees", as in `block_gibbs`.
    scan : "systematic": a sweep draws all in order. "random": a step draws one of them, chosen at random.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
    >>> certify_gibbs(graph).holds
    True
    >>> equal = FactorGraph([("ab", [[1, 0], [0, 2]])])
    >>> [check.name for check in certify_gibbs(equal).failed], certify_gibbs(equal, blocks=["ab"]).holds
    (['classes'], True)
    """
    scanning(scan)
    program = compiled(model, evidence, blocks)
    if len(program.free) == 0:
        raise ValueError("The evidence tells the states of all variables: nothing is drawn, and there is nothing to prove.")
    _, law = program.states()
    matrix, unbalanced = program.matrix(scan), 0.0
    for step in program.steps():
        flow = law[:, None] * step  # P(x) p(x → x'), over P(x') p(x' → x) the ratio of Metropolis
        unbalanced = max(unbalanced, float(np.abs(flow - flow.T).sum()))
    return Certificate(
        Check("stationary", float(np.abs(law @ matrix - law).sum()), ROUNDING, "proof", "a sweep leaves the law as it is"),
        Check("balance", unbalanced, ROUNDING, "proof", "each draw is a Metropolis step with the ratio 1: as much flows back"),
        Check("classes", float(program.classes() - 1), 0.0, "proof", "classes of states that moves never leave, but one"),
        subject=f"Gibbs sampling by {'variables' if blocks is None else 'blocks'}",
    )
