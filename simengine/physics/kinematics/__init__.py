"""Where bodies, joints, geoms and sites are, and how they move: frames, centres of mass, motion axes."""
