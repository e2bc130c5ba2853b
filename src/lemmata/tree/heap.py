"""A heap of numbered entries for kernels: the least key comes first, and of equal ones the least number.

>>> import numpy as np
>>> keys, numbers = np.empty(3), np.empty(3, np.int64)
>>> size = push(keys, numbers, push(keys, numbers, push(keys, numbers, 0, 2.0, 7), 1.0, 9), 1.0, 8)
>>> pop(keys, numbers, size)[1:]
(8, 2)
"""

from lemmata.core.kernel import kernel


@kernel
def _before(key, number, other_key, other_number):
    return key < other_key or (key == other_key and number < other_number)


@kernel
def push(keys, numbers, size, key, number):
    """Put an entry into a heap of some size; return its size."""
    i = size
    while i > 0 and _before(key, number, keys[(i - 1) // 2], numbers[(i - 1) // 2]):
        keys[i], numbers[i] = keys[(i - 1) // 2], numbers[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], numbers[i] = key, number
    return size + 1


@kernel
def pop(keys, numbers, size):
    """Take the first entry out of a heap; return its key, its number, and the size that is left."""
    key, number = keys[0], numbers[0]
    size -= 1
    last_key, last_number = keys[size], numbers[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(keys[child + 1], numbers[child + 1], keys[child], numbers[child]):
            child += 1
        if not _before(keys[child], numbers[child], last_key, last_number):
            break
        keys[i], numbers[i] = keys[child], numbers[child]
        i = child
    keys[i], numbers[i] = last_key, last_number
    return key, number, size
