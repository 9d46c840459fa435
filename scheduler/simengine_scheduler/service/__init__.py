"""Several processes share one processor: an owner runs the lists that its clients submit, side by side.

In the process that has the GPU or the cores:      In each client:

    with service.serve("/tmp/owner") as owner:        client = service.connect("/tmp/owner")
        owner.join()                                   x = client.allocate("x", 1024)
                                                       scale = client.library("kernels.so", "scale")
                                                       call = ClientCall("scale", scale, ("x",), updates=("x",))
                                                       step = client.define([call])
                                                       client.submit(step).wait()
"""

from .calls import ClientCall, ClientList
from .client import Client, Ticket, connect
from .errors import ListFailed, OwnerLost, QueueFull, RequestRefused, ServiceError
from .owner import Owner, serve

__all__ = [
    "Client",
    "ClientCall",
    "ClientList",
    "ListFailed",
    "Owner",
    "OwnerLost",
    "QueueFull",
    "RequestRefused",
    "ServiceError",
    "Ticket",
    "connect",
    "serve",
]
