"""Arrows between variables, kept as {variable: its parents}: ancestors, orders, and cycles."""


def ancestors(parents, names):
    """Gather variables and all that lead to them.

    Examples
    --------
    >>> sorted(ancestors({"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}, ["c"]))
    ['a', 'b', 'c']
    """
    found = dict.fromkeys(names)
    queue = list(found)
    for name in queue:
        for parent in parents[name]:
            if parent not in found:
                found[parent] = None
                queue.append(parent)
    return set(found)


def cycle_of(parents):
    """Find variables that are ancestors of themselves, each the parent of the next; an empty list if there are none.

    Examples
    --------
    >>> cycle_of({"a": (), "b": ("a",)}), cycle_of({"a": ("b",), "b": ("a",)})
    ([], ['a', 'b', 'a'])
    """
    waits = {name: len(family) for name, family in parents.items()}
    children = {name: [] for name in parents}
    for name, family in parents.items():
        for parent in family:
            children[parent].append(name)
    ready = [name for name, count in waits.items() if not count]
    for name in ready:
        for child in children[name]:
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if len(ready) == len(parents):
        return []
    name, seen = next(name for name, count in waits.items() if count), []
    while name not in seen:
        seen.append(name)
        name = next(parent for parent in parents[name] if waits[parent])
    return [name, *seen[: seen.index(name) : -1], name]


def parents_first(parents):
    """Order variables so that parents come before their children; a directed cycle is an error that names it.

    Examples
    --------
    >>> parents_first({"b": ("a",), "a": ()})
    ['a', 'b']
    >>> parents_first({"a": ("b",), "b": ("a",)})
    Traceback (most recent call last):
        ...
    ValueError: The arrows form a cycle: a → b → a.
    """
    cycle = cycle_of(parents)
    if cycle:
        raise ValueError(f"The arrows form a cycle: {' → '.join(map(str, cycle))}.")
    order, placed = [], set()
    for name in parents:
        stack = [name]
        while stack:
            waiting = [above for above in parents[stack[-1]] if above not in placed]
            if waiting:
                stack += waiting
            else:
                here = stack.pop()
                if here not in placed:
                    placed.add(here)
                    order.append(here)
    return order
