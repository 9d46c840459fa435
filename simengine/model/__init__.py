"""Models: loading through MuJoCo, refusal of unsupported features, and the table that the stages read.

The files are:

    model                              `load_model` and `Model`
    support                            every feature of a model that the engine lacks
    table                              the fields of the model table
    build, and a file for each topic   how the fields follow from MuJoCo's model
    blob                               the table packed into arrays for the kernels
    params                             parameters that differ between worlds
"""

from simengine.model.model import Model, load_model

__all__ = ["Model", "load_model"]
