"""How the page looks: one column of text, quiet tables, the reader's choice of light or dark."""

STYLE = """
:root { --ink: #1f2430; --soft: #667085; --line: #e3e6ec; --paper: #ffffff; --shade: #f6f7f9;
        --proof: #1d7f58; --local: #2c62b0; --evidence: #9a6410; --refused: #b3283b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ee; --soft: #98a1b3; --line: #2f3542; --paper: #14171d; --shade: #1c2028;
          --proof: #5ccb9e; --local: #7fb0f5; --evidence: #e5b25c; --refused: #f07f8e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 3rem 1.5rem 4rem; }
h1, h2 { font-family: "Iowan Old Style", "Palatino Linotype", Palatino, Georgia, serif; font-weight: 600; line-height: 1.2; }
h1 { font-size: 2.1rem; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 0 0 1rem; }
header p { color: var(--soft); margin: 0; }
section, details { margin-top: 2.2rem; padding-top: 1.6rem; border-top: 1px solid var(--line); }
summary { cursor: pointer; list-style-position: outside; } summary h2 { display: inline-block; margin: 0; }
details[open] summary { margin-bottom: 1rem; }
summary::marker { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; min-width: 60%; }
caption { text-align: left; padding-bottom: .5rem; color: var(--soft); }
th, td { padding: .42rem 1.1rem .42rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
.lemmata-certificate td { white-space: nowrap; }
.lemmata-certificate td:last-child { white-space: normal; min-width: 14rem; }
td { font-variant-numeric: tabular-nums; }
.number { text-align: right; white-space: nowrap; }
.badge { font: 600 .78rem/1 system-ui, sans-serif; padding: .28em .6em; border-radius: 1em; border: 1px solid;
         white-space: nowrap; color: var(--soft); }
h2 .badge { margin-left: .4em; vertical-align: .2em; }
.badge.proof { color: var(--proof); } .badge.local { color: var(--local); }
.badge.evidence { color: var(--evidence); } .badge.refused { color: var(--refused); white-space: normal; }
td .badge.refused { display: inline-block; line-height: 1.35; min-width: 12rem; }
.note { color: var(--soft); font-size: .9rem; margin: .6rem 0 0; max-width: 46rem; }
.promise { margin: 1.1rem 0 0; padding: .1rem 0 .1rem 1rem; border-left: 3px solid var(--local); max-width: 46rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem; align-items: flex-start; margin-top: 1.5rem; }
figure { margin: 0; flex: 1 1 22rem; max-width: 29rem; }
figure.broad { flex-basis: 100%; max-width: 40rem; }
img { width: 100%; height: auto; }
/* Plots are drawn for light paper without a background: inverted, with hues turned back, they fit the dark page. */
@media (prefers-color-scheme: dark) { img { filter: invert(.88) hue-rotate(180deg); } }
figcaption { color: var(--soft); font-size: .85rem; }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8rem; }
@media print { main { max-width: none; padding: 0; } section { break-inside: avoid; } }
"""

PLOT_STYLE = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#3a4150"),
    "font.size": 11,
}
