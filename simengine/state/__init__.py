"""State: the table of every field that a stage may read or write, with its layout in memory."""
