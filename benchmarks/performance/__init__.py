"""The page `docs/performance.md` and its chart, written from the committed result files."""
