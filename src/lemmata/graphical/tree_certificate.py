"""The proof that a calibrated junction tree is exact, recomputed from the factors with plain tables.

Let ψ_c be the product of the factors of clique c and of what is known of its residual variables, b_c its belief, and s_c that
of its separator. For any positive functions λ_c of the separators (here: what a plain upward pass gives), if

    b_c / s_c = ψ_c Π_children λ / λ_c     at every entry of every clique,

then the λ cancel in the product over all cliques, and Π b_c / Π s_c is proportional to the product of all factors. If besides
neighbors agree on their separators, and every variable's cliques hang together, then each b_c is the marginal of that product
(Lauritzen & Spiegelhalter 1988). For the most probable state, with maxima in place of sums, each max(ψ_c + Σ μ − μ_c) bounds
what a clique can contribute, so that their sum is an upper bound of log Π factors: equality at a state proves that none is
more probable (Werner 2007).
"""

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.graphical.evidence import encode_evidence
from lemmata.graphical.factor import Factor

AGREE = 1e-9  # probabilities and logarithms agree to rounding, with a margin for long products


def certificate(tree, evidence=None, assignment=None):
    """Check what a junction tree says given evidence; with an assignment, also that none is more probable."""
    cliques, separators, parents = tree.cliques, tree.separators, tree.parents
    factors = _with_evidence(tree.model, evidence)
    holder, missed = _holders(factors, cliques)
    forest = [
        Check("cover", float(missed), 0.0, "proof", "every factor lies in a clique"),
        Check("intersection", float(_torn(cliques, separators, parents)), 0.0, "proof", "a variable's cliques hang together"),
    ]
    if missed:
        return Certificate(*forest, subject=repr(tree))
    own = _products(factors, holder, cliques, tree.model)
    tables, sums = _upward(own, separators, parents, Factor.marginal)
    log_z = sum(float(message.values) for message, p in zip(sums, parents, strict=True) if p < 0)
    found = tree.calibrate(evidence)
    checks = [
        *forest,
        Check("product", _product_miss(found, tables, sums, parents), AGREE, "proof", "beliefs give the product of factors"),
        Check("separators", _separator_miss(found, parents), AGREE, "proof", "neighboring cliques agree on what they share"),
        Check(
            "partition",
            _largest(
                *(belief.values.sum() - 1.0 for belief in found.beliefs),
                (found.log_partition - log_z) / max(1.0, abs(log_z)),
            ),
            AGREE,
            "proof",
            "every clique has the same partition function, which is the one given",
        ),
        Check("marginals", _marginal_miss(found), AGREE, "proof", "the answer for a variable is that of every clique with it"),
    ]
    if assignment is not None:
        checks.append(map_check(tree.model, own, separators, parents, evidence, assignment))
    return Certificate(*checks, subject=repr(tree))


def map_check(model, own, separators, parents, evidence, assignment):
    """Bound the logarithm of the product of factors from above, and compare with an assignment's."""
    tables, bounds = _upward(own, separators, parents, Factor.maximum)
    total = 0.0
    for table, bound, p in zip(tables, bounds, parents, strict=True):
        total += float((table.values - _finite(bound._aligned(table.variables)) if p >= 0 else table.values).max())
    codes = {name: model._code(name, assignment[name]) for name in model._whole(assignment)}
    value = float(sum(factor.given(codes).values for factor in _with_evidence(model, evidence)))
    miss = (total - value) / max(1.0, abs(value)) if np.isfinite(value) else np.inf
    return Check("map", float(miss), AGREE, "proof", "no assignment is more probable: a bound of all is reached")


def _with_evidence(model, evidence):
    """Give the logarithms of a model's factors, and one more factor for each piece of evidence."""
    numbers, starts, likelihood = encode_evidence(model, evidence)
    known = [Factor([model.variables[v]], likelihood[a:b]) for v, a, b in zip(numbers, starts[:-1], starts[1:], strict=True)]
    return [factor.as_log() for factor in (*model.factors, *known)]


def _holders(factors, cliques):
    """Find a clique for each factor, the smallest that holds it; count the factors that have none."""
    sets = sorted(((len(clique), c, set(clique)) for c, clique in enumerate(cliques)), key=lambda entry: entry[:2])
    of_variable = {}
    for _, c, members in sets:
        for name in members:
            of_variable.setdefault(name, []).append((c, members))
    holder, missed = [], 0
    for factor in factors:
        scope = set(factor.variables)
        near = min((of_variable.get(name, []) for name in scope), key=len, default=[(0, set())])
        found = next((c for c, members in near if scope <= members), None)
        missed += found is None
        holder.append(found)
    return holder, missed


def _torn(cliques, separators, parents):
    """Count variables whose cliques do not form one subtree, and separators that are not what neighbors share."""
    bad, pieces = 0, {}
    for clique, shared, p in zip(cliques, separators, parents, strict=True):
        for name in clique:
            pieces[name] = pieces.get(name, 0) + 1
        if p >= 0:
            bad += set(shared) != set(clique) & set(cliques[p])
            for name in shared:
                pieces[name] -= 1
        else:
            bad += bool(shared)
    return bad + sum(number != 1 for number in pieces.values())


def _products(factors, holder, cliques, model):
    """Multiply the factors of each clique (as logarithms), over all its variables."""
    own = [Factor(clique, np.zeros([len(model.states[name]) for name in clique]), log=True) for clique in cliques]
    for factor, c in zip(factors, holder, strict=True):
        own[c] = own[c] * factor
    return own


def _upward(own, separators, parents, over):
    """Pass messages to the roots, children before parents; give the tables with what they received, and the messages."""
    tables, messages = list(own), []
    for c, (shared, p) in enumerate(zip(separators, parents, strict=True)):
        messages.append(over(tables[c], shared))
        if p >= 0:
            tables[p] = tables[p] * messages[c]
    return tables, messages


def _finite(logs):
    """Replace log 0 by 0: what it is taken from is log 0 as well."""
    return np.where(np.isneginf(logs), 0.0, logs)


def _largest(*misses):
    """Give the largest absolute value in arrays and numbers; NaN if there is one, which no limit admits."""
    return float(np.max([np.abs(miss).max() for miss in misses], initial=0.0))


def _product_miss(found, tables, sums, parents):
    """Say by how much b_c misses s_c ψ_c Π λ_children / λ_c."""
    misses = []
    for table, message, belief, shared, p in zip(tables, sums, found.beliefs, found.separators, parents, strict=True):
        given = np.exp(table._aligned(belief.variables) - _finite(message._aligned(belief.variables)))
        misses.append(belief.values - (given * shared._aligned(belief.variables) if p >= 0 else given))
    return _largest(*misses)


def _separator_miss(found, parents):
    """Say by how much neighbors differ on what they share."""
    pairs = [(found.beliefs[side], found.separators[c]) for c, p in enumerate(parents) if p >= 0 for side in (c, p)]
    return _largest(*(belief.marginal(shared.variables).values - shared.values for belief, shared in pairs))


def _marginal_miss(found):
    """Say by how much the marginals of variables differ from those of the cliques they are in."""
    pairs = [(belief, name) for belief in found.beliefs for name in belief.variables]
    return _largest(*(belief.marginal([name]).values - found.marginals[name] for belief, name in pairs))
