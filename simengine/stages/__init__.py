"""The stages of the physics: for each a declaration, a device body and a JAX form, side by side."""
