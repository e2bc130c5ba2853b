"""Which variables of a Bayes net are independent given others, by the arrows alone, and why.

A trail between two variables is blocked by what is observed at one of its inner vertices v:
    chain     a → v → b    blocked if v is observed,
    fork      a ← v → b    blocked if v is observed,
    collider  a → v ← b    blocked unless v or a descendant of it is observed.
If every trail is blocked, the variables are d-separated: independent given the observed ones, whatever the tables are. If one
is open, almost all tables make them dependent. The answer takes linear time: a ball is sent from one side along all trails at
once, and only the vertex and the direction it comes from matter at each step. What explains it is a shortest open trail, or
else all blocked ones in turn; there may be very many of those, so they are listed as they are asked for.

References: Pearl, Probabilistic Reasoning in Intelligent Systems, 1988; Shachter, UAI 1998; Koller and Friedman, Probabilistic
Graphical Models, 2009, section 3.3.
"""

from collections import deque
from itertools import islice, pairwise
from typing import NamedTuple

from lemmata.graphical.arrows import ancestors, cycle_of

SHOWN = 8  # trails in a printed explanation


class Trail(NamedTuple):
    """A trail and what happens on it.

    Attributes
    ----------
    vertices : From one end to the other.
    blocker : The vertex that blocks it, None if it is open.
    kind : "chain", "fork" or "collider": what the trail is there; None if it is open.
    text : The same in words.
    """

    vertices: tuple
    blocker: object
    kind: object
    text: str

    def __str__(self):
        return self.text


class Separation:
    """The answer of `d_separated`: true or false, with the reason.

    Attributes
    ----------
    separated : Whether every trail is blocked; also what the answer is as a truth value.
    open_trail : A shortest `Trail` that is open, or None.

    Examples
    --------
    >>> answer = d_separated({"rain": (), "sprinkler": (), "wet": ("rain", "sprinkler")}, "rain", "sprinkler", given="wet")
    >>> answer.separated, answer.open_trail is None
    (False, False)
    """

    def __init__(self, net, sources, targets, given, walk):
        self._net, self._ends, self._given = net, (sources, targets), given
        self.separated = walk is None
        self.open_trail = None if walk is None else net.judge(walk, given)

    def __bool__(self):
        return self.separated

    def __repr__(self):
        return f"<Separation: {'separated' if self.separated else self.open_trail}>"

    def trails(self):
        """Give the trails one by one, each with what blocks it, if anything does."""
        for walk in self._net.walks(*self._ends):
            yield self._net.judge(walk, self._given)

    def __str__(self):
        who = " and ".join(", ".join(sorted(map(str, end))) for end in self._ends)
        if not self.separated:
            return f"{who} are not separated: {self.open_trail}."
        shown = list(islice(self.trails(), SHOWN + 1))
        if not shown:
            return f"{who} are separated: no trail joins them."
        lines = [f"{who} are separated: every trail is blocked.", *(f"  {trail}" for trail in shown[:SHOWN])]
        return "\n".join([*lines, "  … and more."] if len(shown) > SHOWN else lines)


def d_separated(parents, x, y, given=()):
    """Tell whether variables are d-separated by others, and why.

    Parameters
    ----------
    parents : {variable: its parents}, without a directed cycle.
    x, y, given : A variable or several; none of them may be in two of the three.

    Returns
    -------
    answer : `Separation`: true if every trail between x and y is blocked by `given`.

    Examples
    --------
    >>> parents = {"rain": (), "sprinkler": (), "wet": ("rain", "sprinkler"), "slippery": ("wet",)}
    >>> bool(d_separated(parents, "rain", "sprinkler"))
    True
    >>> print(d_separated(parents, "rain", "sprinkler", given="slippery"))
    rain and sprinkler are not separated: rain → wet ← sprinkler is open because wet's descendant slippery is observed.
    >>> print(d_separated(parents, "rain", "slippery", given="wet"))
    rain and slippery are separated: every trail is blocked.
      rain → wet → slippery is blocked because wet is observed (chain)
    """
    net = _Net(parents)
    sources, targets, observed = (net.chosen(names) for names in (x, y, given))
    for one, other in ((sources, targets), (sources, observed), (targets, observed)):
        common = [name for name in one if name in other]
        if common:
            raise ValueError(f"x, y and given must have no variable in common, and {common[0]!r} is in two of them.")
    return Separation(net, sources, targets, observed, net.open_walk(sources, targets, observed))


class _Net:
    """Arrows in both directions, and the walks along them."""

    def __init__(self, parents):
        self.parents = parents
        self.children = {name: [] for name in parents}
        for name, family in parents.items():
            for parent in family:
                if parent not in self.children:
                    raise ValueError(f"The parent {parent!r} of {name!r} is no variable of the net.")
                self.children[parent].append(name)
        cycle = cycle_of(parents)
        if cycle:
            raise ValueError(f"The arrows form a cycle: {' → '.join(map(str, cycle))}; d-separation is defined without.")

    def chosen(self, names):
        """Read one name or a collection of them."""
        try:
            if names in self.parents:
                return {names: None}
        except TypeError:  # a list or a set is no name
            pass
        if isinstance(names, str):
            raise ValueError(f"There is no variable {names!r}.")
        chosen = dict.fromkeys(names)  # a set that remembers the order
        for name in chosen:
            if name not in self.parents:
                raise ValueError(f"There is no variable {name!r}.")
        return chosen

    def open_walk(self, sources, targets, given):
        """Send a ball from the sources; give the shortest way by which it gets to a target, or None.

        A ball comes to a vertex from a child (True) or from a parent (False). No vertex is on a shortest way twice: from an
        unobserved vertex, the ball from a child may leave by any arrow; and if it came back from a child after it had come from
        a parent, then it was turned round by a collider below, which opens the vertex itself.
        """
        opened = ancestors(self.parents, given)
        came = {(name, True): None for name in sources}
        queue = deque(came)
        while queue:
            here = name, rising = queue.popleft()
            if name in targets:
                walk = [name]
                while (here := came[here]) is not None:
                    walk.append(here[0])
                return tuple(reversed(walk))
            up = name not in given if rising else name in opened
            steps = [(parent, True) for parent in self.parents[name]] if up else []
            if name not in given:
                steps += [(child, False) for child in self.children[name]]
            for step in steps:
                if step not in came:
                    came[step] = here
                    queue.append(step)
        return None

    def walks(self, sources, targets):
        """Give all trails from a source to a target that have no other source or target on them.

        No step is taken from which the rest of the way is barred, so the next trail is never far.
        """
        for source in sources:
            barred = {*sources}
            if not self._reaches(source, targets, barred):
                continue
            path, choices = [source], [self._steps(source, targets, barred)]
            while path:
                step = next(choices[-1], None)
                if step is None:
                    choices.pop()
                    barred.discard(path.pop())
                elif step in targets:
                    yield (*path, step)
                else:
                    barred.add(step)
                    path.append(step)
                    choices.append(self._steps(step, targets, barred))

    def _steps(self, name, targets, barred):
        """Give the neighbors from which a target can be reached, looked at one by one; there is at least one."""
        steps = [step for step in (*self.parents[name], *self.children[name]) if step not in barred]
        for step in steps:
            if len(steps) == 1 or self._reaches(step, targets, barred):
                yield step

    def _reaches(self, name, targets, barred):
        seen, queue = {name}, [name]
        for here in queue:
            if here in targets:
                return True
            for step in (*self.parents[here], *self.children[here]):
                if step not in barred and step not in seen:
                    seen.add(step)
                    queue.append(step)
        return False

    def judge(self, walk, given):
        """Find the first vertex that blocks a trail, or say why it is open."""
        arrows = ["→" if a in self.parents[b] else "←" for a, b in pairwise(walk)]
        drawn = str(walk[0]) + "".join(f" {arrow} {name}" for arrow, name in zip(arrows, walk[1:], strict=True))
        reasons = []
        for name, before, after in zip(walk[1:], arrows, arrows[1:], strict=False):
            kind = "collider" if before + after == "→←" else "fork" if before + after == "←→" else "chain"
            if kind == "collider":
                witness = self._observed_below(name, given)
                if witness is None:
                    text = f"{drawn} is blocked because neither {name} nor a descendant of it is observed (collider)"
                    return Trail(walk, name, kind, text)
                reasons.append(f"{name} is observed" if witness == name else f"{name}'s descendant {witness} is observed")
            elif name in given:
                return Trail(walk, name, kind, f"{drawn} is blocked because {name} is observed ({kind})")
            else:
                reasons.append(f"{name} is not observed")
        why = f"because {', and '.join(reasons)}" if reasons else "because nothing is between them"
        return Trail(walk, None, None, f"{drawn} is open {why}")

    def _observed_below(self, name, given):
        """Find the nearest observed vertex among a vertex and its descendants; None if there is none."""
        seen, queue = {name}, [name]
        for here in queue:
            if here in given:
                return here
            for child in self.children[here]:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
        return None
