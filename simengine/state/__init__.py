"""The state table: every field a stage may read or write."""
