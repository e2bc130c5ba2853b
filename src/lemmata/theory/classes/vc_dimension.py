"""The Vapnik-Chervonenkis dimension by search, bounded from both sides with proofs.

From below, a shattered set of d points is a proof; its 2ᵈ witnesses can be checked one by one. The search looks at structured
sets (basis, simplex, ± basis) and at random ones, and climbs: it replaces one point after another by a new one as long as the
number of labelings does not fall.

From above there are two kinds of proof. A theorem gives for any d + 1 points a labeling that is missing, with its refutation:
Radon's partition for half-spaces, a point inside the bounding box for rectangles, + − + for intervals. On a finite domain
exhaustion is a proof: a list of unshattered sets, each with a missing labeling, such that every set of d + 1 points holds one
of them; subsets of shattered sets are shattered, so the search goes upward and tries a set only if all its subsets passed.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import comb, inf

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.core.random import generator
from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.finite_class import FiniteClass, shattered_levels
from lemmata.theory.classes.hypotheses import HypothesisClass, Shattering
from lemmata.theory.classes.labelings import first_missing
from lemmata.theory.classes.oracle import Oracle

STARTS = 20  # random sets from which the search climbs, for each size
STEPS = 200  # points that a climb may try to replace
TRIALS = 100  # random sets on which the certificate applies the theorem


@dataclass(frozen=True)
class VCDimension:
    """Bounds of a Vapnik-Chervonenkis dimension with their proofs.

    Attributes
    ----------
    lower : Size of the shattered set found.
    upper : Size that no shattered set exceeds; infinity if no proof is known.
    witness : `Shattering` of the set found.
    domain : Finite domain to which the answer applies, or None for the whole space.
    refuted : On a finite domain, unshattered sets (positions) and the `Refutation` of a labeling of each.

    Examples
    --------
    >>> from lemmata.theory.classes.real_line import Intervals
    >>> print(vc_dimension(Intervals(), [1, 2, 3, 4]).certificate())
    2 ≤ dimension ≤ 2: certificate holds (proof)
      check  value     limit  kind   claim
      lower  0.0e+00 ≤ 0e+00  proof  a set of 2 points is shattered, with a witness per labeling
      upper  0.0e+00 ≤ 0e+00  proof  each of the 4 sets of 3 points holds an unshattered set
    """

    lower: int
    upper: float
    witness: Shattering = field(repr=False)
    domain: np.ndarray | None = field(repr=False)
    refuted: dict = field(repr=False)
    _sampler: object = field(repr=False)  # of a number and a generator: the points on which the certificate tries the theorem

    @property
    def value(self):
        """The dimension where both bounds agree, else None."""
        return self.lower if self.lower == self.upper else None

    def certificate(self):
        """Check the witnesses of the lower bound, and the proof of the upper bound: refutations, not the search."""
        shattered = self.witness.certificate()
        size = abs(len(self.witness.points) - self.lower) + (0.0 if self.witness and shattered.holds else 1.0)
        checks = [Check("lower", size, 0.0, "proof", f"a set of {self.lower} points is shattered, with a witness per labeling")]
        if self.domain is not None:
            checks.append(self._exhausted())
        elif self.upper < inf:
            checks.append(self._theorem_holds())
        return Certificate(*checks, subject=f"{self.lower} ≤ dimension ≤ {self.upper}")

    def _exhausted(self):
        bad = 0
        for chosen, refutation in self.refuted.items():
            bad += not self._proved(refutation, self.domain[list(chosen)])
        sets = {frozenset(chosen) for chosen in self.refuted}
        n, d = len(self.domain), int(self.upper)
        sizes = sorted({len(s) for s in sets})
        for larger in combinations(range(n), d + 1):
            bad += not any(frozenset(part) in sets for size in sizes for part in combinations(larger, size))
        claim = f"each of the {comb(n, d + 1)} sets of {d + 1} points holds an unshattered set"
        return Check("upper", float(bad), 0.0, "proof", claim)

    def _theorem_holds(self):
        rng = generator(0)
        bad = 0
        for _ in range(TRIALS):
            points = self._sampler(int(self.upper) + 1, rng)
            try:
                bad += not self._proved(self.witness.cls.unshattered(points), points)
            except ValueError:  # the theorem needs more points
                bad += 1
        claim = f"a theorem refutes a labeling of any {int(self.upper) + 1} points, here of {TRIALS} random sets"
        return Check("upper", float(bad), 0.0, "proof", claim)

    def _proved(self, refutation, points):
        return self.witness.cls.accepts(refutation) and np.array_equal(refutation.points, points) and refutation.valid()


def vc_dimension(cls, search=None, *, max_d=8, random_state=0):
    """Bound the dimension of a class from both sides, with proofs.

    Parameters
    ----------
    cls : Hypothesis class, or an oracle: a function of points (m, d) and labels (m,), see `Oracle`.
    search : Where to look: an array of points, (n, d), is searched exhaustively, and the answer is about these points alone; a
        function of a number m and a generator returns m random points. Default: the domain of a `FiniteClass`, and normal
        points for the other classes; an oracle needs one of the two.
    max_d : Largest size of a set to look for.
    random_state : Seed of the random sets.

    Returns
    -------
    result : `VCDimension` with `lower`, `upper`, `value` where they agree, `witness` and `certificate()`.

    Examples
    --------
    >>> from lemmata.theory.classes.halfspaces import Halfspaces
    >>> result = vc_dimension(Halfspaces(2))
    >>> result, result.value, result.certificate().holds
    (VCDimension(lower=3, upper=3), 3, True)

    Decision stumps, given by a function that looks for one:

    >>> def stump(points, labels):
    ...     at = np.vstack([points, points.min(axis=0) - 1])
    ...     says = (points[:, None] > at).reshape(len(points), -1)
    ...     return any((s == labels).all() or (s != labels).all() for s in says.T)
    >>> grid = [[i, j] for i in range(3) for j in range(3)]
    >>> vc_dimension(stump, grid)
    VCDimension(lower=3, upper=3)
    """
    max_d = check_count(max_d, "max_d")
    if not isinstance(cls, HypothesisClass):
        cls = Oracle(cls)
    if search is None and isinstance(cls, FiniteClass):
        search = cls.whole_domain()
    if search is not None and not callable(search):
        return _exhaustive(cls, cls.as_points(search), max_d)
    if search is None and isinstance(cls, Oracle):
        raise ValueError(
            "An oracle does not say where its points live: give search, an array of points or a function of (m, rng)."
        )
    return _by_climbing(cls, search, max_d, generator(random_state))


def _exhaustive(cls, domain, max_d):
    """Go through the subsets of a finite domain and refute one labeling of each smallest one that is not shattered."""
    refuted = {}

    def shattered(chosen):
        points = domain[list(chosen)]
        missing = first_missing(cls.dichotomies(points))
        if missing is not None:
            refuted[chosen] = cls.refutes(points, missing)
        elif len(chosen) > max_d:
            raise ValueError(f"A set of {len(chosen)} points is shattered, more than max_d = {max_d}: give a larger max_d.")
        return missing is None

    for level in shattered_levels(len(domain), shattered):
        largest = level[0]
    return VCDimension(len(largest), len(largest), cls.shatters(domain[list(largest)]), domain, refuted, None)


def _by_climbing(cls, sampler, max_d, rng):
    """Look for shattered sets of 1, 2, … points, up to the bound of a theorem if there is one."""
    d, structured = getattr(cls, "d", 1), []
    if sampler is None:
        structured = _structured(d)

        def sampler(m, rng):
            return rng.normal(size=(m, d))

    upper = inf
    if not isinstance(cls, Oracle) and cls.vc_dim < inf and cls.unshattered(sampler(cls.vc_dim + 1, rng)) is not None:
        upper = cls.vc_dim
    found = sampler(0, rng)
    for m in range(1, int(min(upper, max_d)) + 1):
        points = _climb(cls, m, [points[:m] for points in structured if len(points) >= m], sampler, rng)
        if points is None:
            break
        found = points
    return VCDimension(len(found), upper, cls.shatters(found), None, {}, sampler)


def _climb(cls, m, starts, sampler, rng):
    """Return m points that the class shatters, or None if none were found."""
    for points in [*starts, *(sampler(m, rng) for _ in range(STARTS))]:
        points = np.array(points)
        count = len(cls.dichotomies(points))
        for step in range(STEPS):
            if count == 2**m:
                return points
            moved = points.copy()
            moved[step % m] = sampler(1, rng)[0]
            reached = len(cls.dichotomies(moved))
            if reached >= count:
                points, count = moved, reached
    return None


def _structured(d):
    """Return sets of points that textbooks shatter: a simplex with the origin last, and the basis with its opposite."""
    basis = np.eye(d)
    return [np.vstack([basis, np.zeros((1, d))]), np.vstack([basis, -basis])]
