"""Write pyagrum.npz: all marginals of nine networks by pyAgrum's LazyPropagation, without evidence and with a tenth observed.

    python tests/graphical/reference/make_pyagrum.py

The networks are those of the bnlearn repository that come with pgmpy. pyAgrum reads the numbers of a BIF file as float32 and
does not read all names, so the nets are put together from our tables, as float64; that our tables are those of the file is
tested elsewhere. The states of the observed variables come from one draw of the whole net, so that they are possible together.
"""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyagrum

from lemmata.graphical.bif import parse_bif

NETWORKS = [
    "asia",
    "child",
    "insurance",
    "alarm",
    "win95pts",
    "hailfinder",
    "andes",
    "pigs",
    "munin1",
]  # not link, for which pyAgrum takes all memory
HERE = Path(__file__).parent
MODELS = Path(find_spec("pgmpy").origin).parent / "utils" / "example_models"


def put_together(found):
    """Make a net of pyAgrum from a description."""
    net = pyagrum.BayesNet()
    for name, labels in found.states.items():
        net.add(pyagrum.LabelizedVariable(name, name, list(labels)))
    for name, family in found.parents.items():
        for parent in family:
            net.addArc(parent, name)
    for name, table in found.tables.items():
        cpt = net.cpt(name)
        family = (*found.parents[name], name)
        cpt[:] = np.ascontiguousarray(table.transpose([family.index(axis) for axis in reversed(cpt.names)]))
    return net


def draw(found, rng):
    """Draw a state of every variable, parents first."""
    codes = {}
    while len(codes) < len(found.states):
        for name, family in found.parents.items():
            if name not in codes and all(parent in codes for parent in family):
                chances = found.tables[name][tuple(codes[parent] for parent in family)]
                codes[name] = int(rng.choice(len(chances), p=chances / chances.sum()))
    return codes


def marginals(net, names, evidence):
    """Ask pyAgrum for everything: the marginals one after another."""
    engine = pyagrum.LazyPropagation(net)
    engine.setEvidence(evidence)
    engine.makeInference()
    return np.concatenate([engine.posterior(name).toarray() for name in names])


if __name__ == "__main__":
    written = {}
    for network in NETWORKS:
        found = parse_bif(gzip.decompress((MODELS / f"{network}.bif.gz").read_bytes()).decode())
        rng = np.random.default_rng(0)
        names, codes, net = list(found.states), draw(found, rng), put_together(found)
        observed = sorted(rng.choice(len(names), size=max(len(names) // 10, 1), replace=False).tolist())
        written[f"{network}_observed"] = np.array([[i, codes[names[i]]] for i in observed])
        written[f"{network}_prior"] = marginals(net, names, {})
        written[f"{network}_posterior"] = marginals(net, names, {names[i]: codes[names[i]] for i in observed})
        print(network, len(names), "variables", len(observed), "observed", flush=True)
    np.savez_compressed(HERE / "pyagrum.npz", **written)
