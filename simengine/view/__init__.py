"""A page in the browser that shows worlds while they step.

    shapes    triangles of primitives, meshes and height fields
    scene     what is drawn of a compiled model, and where its copies lie
    forces    arrows of contact forces and applied forces
    worlds    `Worlds`, what the page needs of that which steps; `SimulatedWorlds`, which is a simulation
    session   `Session`, the loop: its clock, pause, and what is done between steps
    drawing   the scene on the page
    panel     the controls on the page
    page      `Page`, the server with both
    extras    imports the packages of the extra `view`

Only `drawing`, `panel` and `page` need that extra. The physics stays in `Simulation`. Only the command line imports
this folder. Decision 0009 says why the page is made with viser.
"""
