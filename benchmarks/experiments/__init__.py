"""Opening experiments for the GPU design: what layouts, fusing, size classes and read-backs cost on one GPU."""
