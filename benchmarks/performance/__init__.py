"""Writes the page `docs/performance.md` and its chart from the committed result files.

    results ── models, mixed, lists, heaps, costs: tables and figures ── page: fills template.md
        └── chart                                     markdown: how tables and figures are written

`python -m benchmarks.performance` runs them.
"""
