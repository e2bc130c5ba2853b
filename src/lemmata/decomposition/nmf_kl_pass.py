"""Kernels of the generalized Kullback–Leibler divergence: passes over the rows of a block.

A pass improves each row of W (`nmf_kl_rows`) while its entries are in the cache, then sums what H needs of it and the loss.
The logarithms of the loss would cost as much as all the rest if they were called for one at a time: `logarithms` takes a row
at once.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.decomposition.nmf_kl_rows import NEARLY, costs, ratios, root, solve_row, start_row

BIAS, MANTISSA = 1023, 52  # of the exponents of double precision, and the bits below them
FRACTION, HALF_OF = (1 << 52) - 1, 1022 << 52  # the bits of a fraction, and the exponent of numbers from ½ to 1
ROOT_HALF = 0.7071067811865476
LOG2_HIGH, LOG2_LOW = 6.93145751953125e-1, 1.42860682030941723e-6  # log 2 in two parts
VANISHED = 1e-100  # below, an entry counts as zero, before products of two become too small for all their digits


@kernel
def logarithms(v, bits, m, exponent, fraction, parts):
    """Replace the first m numbers, all positive and normal, by their logarithms; loops that vectorize.

    With v = 2ᵉ f, f from √½ to √2, log v = e log 2 + 2 artanh s, s = (f − 1)/(f + 1), |s| ≤ 0.172: eleven odd powers suffice.

    Parameters
    ----------
    bits : The same memory as v, seen as integers.
    exponent, fraction, parts : Room for as many numbers, and integers; `parts` is the memory of `fraction`, as integers.
    """
    for i in range(m):
        exponent[i] = np.float64(np.int32(bits[i] >> MANTISSA) - (BIAS - 1))
        parts[i] = (bits[i] & FRACTION) | HALF_OF
    for i in range(m):
        f = fraction[i]
        low = 1.0 if f < ROOT_HALF else 0.0
        f += low * f
        e = exponent[i] - low
        s = (f - 1.0) / (f + 1.0)
        z = s * s
        p = 1.0 / 21.0
        p = p * z + 1.0 / 19.0
        p = p * z + 1.0 / 17.0
        p = p * z + 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        v[i] = e * LOG2_HIGH + (2.0 * s + (2.0 * s * z * p + e * LOG2_LOW))


# fmt: off
@kernel
def pass_rows(
    indptr, indices, values, marks, inverse, weight, W, fresh, H, shared, penalty, ridge, n_rounds, pulls, mass, bends,
    v, bits, exponent, fraction, parts, w, c, pull, trial, target, free, Q, b, z, gradient, inner, lower, step,
):
    """Improve each row, by an update or by rounds of Newton's method, and add what H needs; return (loss, move, size).

    Parameters
    ----------
    n_rounds : Rounds of Newton's method; 0 for a multiplicative update.
    pulls, mass : Sums Σᵢ sᵢ mᵢⱼ wᵢ xᵢⱼ/(wᵢ·hⱼ) (columns, k), and Σᵢ sᵢ mᵢⱼ wᵢ (columns, k), of a complete table in one row.
    bends : Sums Σᵢ sᵢ mᵢⱼ wᵢwᵢᵀ xᵢⱼ/(wᵢ·hⱼ)² (columns, k, k), or empty where they are not wanted.
    """
    k, loss, moved, size = W.shape[1], 0.0, 0.0, 0.0
    for i in range(len(indptr) - 1):
        s, first, stop = weight[i], indptr[i], indptr[i + 1]
        costs(indptr, indices, marks, H, penalty, i, shared, c)
        if fresh:
            start_row(indptr, values, marks, inverse, i, c, w)
        else:
            for r in range(k):
                w[r] = W[i, r]
        if n_rounds == 0 or fresh:
            ratios(indptr, indices, values, marks, inverse, H, i, w, pull)
            for r in range(k):
                new = root(w[r] * pull[r], c[r], ridge)
                moved += s * c[r] * abs(new - w[r])
                size += s * c[r] * new
                w[r] = new if new > VANISHED else 0.0
        if n_rounds:
            step_W, size_W = solve_row(
                indptr, indices, values, marks, inverse, H, i, ridge, n_rounds, NEARLY,
                w, c, pull, trial, target, free, Q, b, z, gradient, inner, lower, step,
            )
            moved += s * step_W
            size += s * size_W
        spent = 0.0
        for r in range(k):
            W[i, r] = w[r]
            spent += w[r] * (c[r] + 0.5 * ridge * w[r])
            if len(marks) == 0:
                mass[0, r] += s * w[r]
        for p in range(first, stop):
            j, fit, m = indices[p], 0.0, s
            x = values[p] * inverse
            for r in range(k):
                fit += w[r] * H[j, r]
            if len(marks):
                m *= marks[p]
                for r in range(k):
                    mass[j, r] += m * w[r]
            if x > 0.0:
                ratio = x / fit if fit > 0.0 else 0.0
                if fit > 0.0:
                    v[p - first] = ratio
                else:
                    v[p - first] = 1.0
                    loss += np.inf
                pulled = m * ratio
                for r in range(k):
                    pulls[j, r] += pulled * w[r]
                if len(bends) and fit > 0.0:
                    for r in range(k):
                        bend = pulled / fit * w[r]
                        if bend != 0.0:
                            for t in range(k):
                                bends[j, r, t] += bend * w[t]
            else:
                v[p - first] = 1.0
        logarithms(v, bits, stop - first, exponent, fraction, parts)
        part = 0.0
        for p in range(first, stop):
            part += (values[p] * inverse * (marks[p] if len(marks) else 1.0)) * (v[p - first] - 1.0)
        loss += s * (part + spent)
    return loss, moved, size
# fmt: on


@kernel
def error_rows(indptr, indices, values, marks, inverse, weight, W, H, shared):
    """Return the divergence of the rows, as a sum of terms that are not negative; `shared` is Σⱼ hⱼ."""
    k, total = W.shape[1], 0.0
    for i in range(len(indptr) - 1):
        rest, loss = 0.0, 0.0  # of a complete row: what is given to entries that are zero
        if len(marks) == 0:
            for r in range(k):
                rest += W[i, r] * shared[r]
        for p in range(indptr[i], indptr[i + 1]):
            x, j, fit = values[p] * inverse, indices[p], 0.0
            for r in range(k):
                fit += W[i, r] * H[j, r]
            m = marks[p] if len(marks) else 1.0
            if len(marks) == 0:
                rest -= fit
            if x > 0.0:
                loss += m * (x * (fit / x - 1.0 - np.log(fit / x)) if fit > 0.0 else np.inf)
            else:
                loss += m * fit
        total += weight[i] * (loss + max(rest, 0.0))
    return total
