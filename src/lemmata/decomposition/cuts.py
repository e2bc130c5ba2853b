"""Where sparse tables are cut, if nobody makes their blocks dense."""

from lemmata.core.data import is_sparse

ENTRIES = 1 << 16  # stored entries of a block at least: some milliseconds of work


def even(blocks, n_factors, least=ENTRIES):
    """Cut sparse rows in memory by what they hold, not by what they could hold, so that threads get even shares.

    A block has `least` stored entries, and at least as many as a quarter of the table of factors (columns, n_factors) has.

    Examples
    --------
    >>> from lemmata.core.blocks import Blocks
    >>> from scipy.sparse import eye_array
    >>> blocks = Blocks.of(eye_array(200_000, 50, format="csr"), None)
    >>> blocks.block_rows, even(blocks, 20).n_blocks
    (8192, 25)
    """
    if blocks.home != "memory" or not is_sparse(blocks.X):
        return blocks
    entries = max(least, blocks.n_columns * n_factors // 4)
    return blocks.with_block_rows(min(blocks.block_rows, max(entries * blocks.n_rows // max(blocks.X.nnz, 1), 1)))
