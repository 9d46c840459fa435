"""The GPU model against measurements: constants fitted on two workloads, checked on the others, and what follows."""
