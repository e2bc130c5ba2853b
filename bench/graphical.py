"""Exact inference on the networks of the bnlearn repository (which the package pgmpy carries), against pyAgrum and pgmpy.

Four tables. Agreement: all marginals, without evidence and with a tenth of the variables observed at states drawn from the
joint, against pyAgrum's LazyPropagation (for link, which takes that more than 24 GiB, its variable elimination); its net is
built from the tables that we read, because its own reader keeps single precision and cannot read some of the files. Queries: a
compiled model, new evidence each time; pyAgrum keeps its engine, and the loop over its posteriors is part of the answer; pgmpy
eliminates variables for each of them. From text: file to first marginals. Most probable states: against toulbar2, if that is
installed, on the same UAI file.
"""

import gzip
import logging
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from lemmata.graphical import from_bif, to_uai

AGREEMENT = ("asia", "child", "insurance", "alarm", "win95pts", "hailfinder", "hepar2", "andes", "pigs", "link", "munin1")
QUERIES = {"alarm": 50, "hailfinder": 50, "win95pts": 50, "hepar2": 50, "andes": 15, "pigs": 15, "munin1": 15}
FROM_TEXT = ("alarm", "andes", "pigs")
MAPS = ("alarm", "hailfinder", "win95pts", "hepar2", "insurance", "andes", "pigs")
SLOW = ("link", "munin1")  # pyAgrum takes minutes
RESTARTS = 200  # of the search for an order, where a model is asked many times


@cache
def path_of(name):
    """Unpack a network into a file."""
    text = gzip.decompress((files("pgmpy") / "utils" / "example_models" / f"{name}.bif.gz").read_bytes())
    path = Path(tempfile.mkdtemp()) / f"{name}.bif"
    path.write_bytes(text)
    return path


@cache
def net_of(name):
    return from_bif(path_of(name)).compile(restarts=None if name in SLOW else RESTARTS)


def evidences(name, n, seed=0):
    """Observe a tenth of the variables at states drawn from the joint, n times."""
    net, rng = net_of(name), np.random.default_rng(seed)
    drawn = net.sample(n, random_state=seed)
    k = max(1, len(net.variables) // 10)
    chosen = [rng.choice(len(net.variables), k, replace=False) for _ in range(n)]
    return [{net.variables[i]: str(drawn[net.variables[i]][row]) for i in some} for row, some in enumerate(chosen)]


def leaves(name, n, seed=0):
    """Observe five variables without children at states drawn from the joint, n times."""
    net, rng = net_of(name), np.random.default_rng(seed)
    drawn, parents = net.sample(n, random_state=seed), {parent for above in net.parents_.values() for parent in above}
    ends = [variable for variable in net.variables if variable not in parents]
    chosen = [rng.choice(len(ends), min(5, len(ends)), replace=False) for _ in range(n)]
    return [{ends[i]: str(drawn[ends[i]][row]) for i in some} for row, some in enumerate(chosen)]


def agrum_net(net):
    """Build pyAgrum's net from our tables; its axes run the other way."""
    import pyagrum

    theirs = pyagrum.BayesNet()
    for name in net.variables:
        theirs.add(pyagrum.LabelizedVariable(name, name, [str(state) for state in net.states[name]]))
    for name in net.variables:
        for parent in net.parents_[name]:
            theirs.addArc(parent, name)
    for name, factor in zip(net.variables, net.factors, strict=True):
        table = theirs.cpt(name)
        table.fillWith(factor.marginal(list(reversed(table.names))).values.ravel().tolist())
    return theirs


@cache
def agrum_engine(name):
    import pyagrum

    return pyagrum.LazyPropagation(agrum_net(net_of(name)))


def agrum_marginals(engine, names, evidence):
    engine.setEvidence(evidence or {})
    engine.makeInference()
    return {name: engine.posterior(name).toarray() for name in names}


def agrum_by_elimination(name, evidence):
    """Eliminate variables for each marginal: LazyPropagation takes more than 24 GiB for link."""
    import pyagrum

    net, found = net_of(name), {}
    theirs = agrum_net(net)
    for variable in net.variables:
        engine = pyagrum.VariableElimination(theirs)
        engine.setEvidence(evidence or {})
        engine.setTargets({variable})
        engine.makeInference()
        found[variable] = engine.posterior(variable).toarray()
    return found


def agrum(name, evidence):
    if name == "link":
        return agrum_by_elimination(name, evidence)
    return agrum_marginals(agrum_engine(name), net_of(name).variables, evidence)


def miss(ours, theirs):
    return max(float(np.abs(ours[name] - theirs[name]).max()) for name in ours)


def best_of(run, repeats):
    """Return the best time of several."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def agreement():
    lines = [
        "| network | variables | width | table entries | without evidence | with a tenth observed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in AGREEMENT:
        net = net_of(name)
        tree = net.junction_tree()
        given = evidences(name, 1 if name in SLOW else 5, seed=1)
        worst = max(miss(net.marginals(e), agrum(name, e)) for e in given)
        prior = miss(net.marginals(), agrum(name, None))
        lines.append(f"| {name} | {len(net.variables)} | {tree.width} | {tree.n_entries:,} | {prior:.1e} | {worst:.1e} |")
        print(lines[-1], flush=True)
    return "Largest difference of a probability from pyAgrum's (bar: 1e-10).\n\n" + "\n".join(lines)


def queries():
    head = "| network | evidence | ours, ms | pyAgrum, ms | ratio | bar | pgmpy, ms | ratio | bar |"
    lines = [head, "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, bar in QUERIES.items():
        net, engine, slow = net_of(name), agrum_engine(name), name in SLOW
        for kind, make in (("5 leaves", leaves), ("a tenth", evidences)):
            given = make(name, 3 if slow and kind == "a tenth" else 1 if slow else 4, seed=2)
            pairs = [timed(net, engine, evidence, 3 if slow else 30, 1 if slow else 5) for evidence in given]  # in turns
            ours, theirs = np.mean(pairs, axis=0)
            ratio = theirs / ours
            mark = "✓" if ratio >= bar else "✗"
            line = f"| {name} | {kind} | {1e3 * ours:.4g} | {1e3 * theirs:.4g} | {ratio:.0f}× | {bar}× {mark} |"
            if name in ("alarm", "hailfinder", "win95pts", "hepar2"):
                took = pgmpy_query(name, given[0])
                line += f" {1e3 * took:.4g} | {took / ours:.0f}× | 500× {'✓' if took / ours >= 500 else '✗'} |"
            else:
                line += " | | |"
            lines.append(line)
            print(line, flush=True)
    return "All marginals of a compiled model, new evidence each time, on average over several.\n\n" + "\n".join(lines)


def timed(net, engine, evidence, n_ours, n_theirs):
    ours = best_of(lambda: net.marginals(evidence), n_ours)
    return ours, best_of(lambda: agrum_marginals(engine, net.variables, evidence), n_theirs)


@cache
def pgmpy_model(name):
    from pgmpy.readwrite import BIFReader

    return BIFReader(str(path_of(name))).get_model()


def pgmpy_query(name, evidence):
    from pgmpy.inference import VariableElimination

    model = pgmpy_model(name)
    engine = VariableElimination(model)
    rest = [v for v in model.nodes() if v not in evidence]
    return best_of(lambda: [engine.query([v], evidence=evidence, show_progress=False) for v in rest], 2)


def from_text():
    import pyagrum
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    lines = [
        "| network | ours, ms | pyAgrum, ms | ratio | bar | pgmpy, ms | ratio | bar |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in FROM_TEXT:
        path = path_of(name)

        def agrum_from_text(path=path):
            net = pyagrum.loadBN(str(path))
            return agrum_marginals(pyagrum.LazyPropagation(net), net.names(), None)

        def pgmpy(path=path):  # its reading alone, and one marginal: all of them would take it longer
            model = BIFReader(str(path)).get_model()
            return VariableElimination(model).query([next(iter(model.nodes()))], show_progress=False)

        ours = theirs = np.inf
        for _ in range(5):
            ours = min(ours, best_of(lambda path=path: from_bif(path).marginals(), 3))
            theirs = min(theirs, best_of(agrum_from_text, 3))
        slow = best_of(pgmpy, 1)
        a, b = theirs / ours, slow / ours
        line = f"| {name} | {1e3 * ours:.3g} | {1e3 * theirs:.3g} | {a:.1f}× | 1.5× {'✓' if a >= 1.5 else '✗'} |"
        lines.append(f"{line} {1e3 * slow:.4g} | {b:.0f}× | 20× {'✓' if b >= 20 else '✗'} |")
        print(lines[-1], flush=True)
    return (
        "From the BIF file to the first marginals, kernels compiled; pgmpy: to the first marginal of one variable.\n\n"
        + "\n".join(lines)
    )


def maps():
    """Compare the most probable states with toulbar2's, which proves them optimal by branch and bound."""
    solver = shutil.which("toulbar2")
    if solver is None:
        return "toulbar2 is not installed: most probable states were not compared."
    lines = ["| network | log P, ours | log P, toulbar2's states | ours, ms | toulbar2, s |", "|---|---:|---:|---:|---:|"]
    for name in MAPS:
        net, folder = net_of(name), Path(tempfile.mkdtemp())
        evidence = evidences(name, 1, seed=3)[0]
        (folder / "net.uai").write_text(to_uai(net))
        known = [(net.variables.index(v), net._code(v, value)) for v, value in evidence.items()]
        (folder / "net.evid").write_text(" ".join(str(x) for x in (len(known), *(x for pair in known for x in pair))))
        start = time.perf_counter()
        done = subprocess.run(
            [solver, "net.uai", "net.evid", "-w=best.sol", "-precision=9", "-timer=300"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - start
        seconds = best_of(lambda net=net, evidence=evidence: net.map(evidence), 5)
        best = net.map(evidence)
        proved = net.certify(evidence=evidence, assignment=best)["map"].holds
        states = re.findall(r"\d+", (folder / "best.sol").read_text()) if (folder / "best.sol").exists() else []
        other = (
            net.log_value({v: net.states[v][int(s)] for v, s in zip(net.variables, states, strict=True)}) if states else np.nan
        )
        optimal = "optimum" in done.stdout.lower()
        lines.append(
            f"| {name} | {best.log_value:.9f}{' (proved)' if proved else ''} | {other:.9f}{'' if optimal else ' (not proved)'} "
            f"| {1e3 * seconds:.3g} | {took:.2g} |"
        )
        print(lines[-1], flush=True)
    return "Most probable states given a tenth of the variables.\n\n" + "\n".join(lines)


def report():
    logging.disable(logging.CRITICAL)  # pgmpy tells all
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "\n\n".join([agreement(), queries(), from_text(), maps()])
