"""Pictures are drawn into memory."""

import matplotlib as mpl

mpl.use("Agg")
