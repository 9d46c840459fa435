"""Models: loading through MuJoCo, the support gate, and the table the stages read."""

from simengine.model.model import Model, load_model

__all__ = ["Model", "load_model"]
