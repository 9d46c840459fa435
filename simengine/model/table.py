"""The model table: the data of a compiled model that the stages read.

A field has MuJoCo's name where MuJoCo has one; derived fields (levels, candidate pairs, limited joints) are described
at their entry. Both the packing into one integer and one real array per model and the generated accessors of the
kernels follow from this table, so the structure of a model is never compiled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

# The sizes of a model; the integer header begins with them, in this order.
SIZES: tuple[str, ...] = (
    *("nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "ntendon", "nwrap", "npath", "nmocap", "ngravcomp"),
    *(
        "nlevel",
        "nround",
        "nheld",
        "nroot",
        "ncand",
        "nspan",
        "nrun",
        "nslot",
        "nnear",
        "nsearch",
        "nkept",
        "nkeptprism",
        "nprism",
    ),
    *("npolytope",),
    *("ncluster", "nclustered", "nstill", "nmeeting", "nculled"),
    *("nlimit", "nmoment", "neq", "nfriction", "ntree"),
    *("nblock", "nM", "nJ", "nwidest", "nbranch", "njoined", "nbranchdof", "njoineddof", "nbranchword"),
    *("nJten", "nJpart", "npathgroup", "npiece", "nJmom"),
    *("nsensor", "nsensordata", "ndistance"),
    *("nhullvert", "nface", "nfacevert", "ncubecell", "ncubevert", "ncubepack"),
    *("nhfield", "nhfielddata"),
    *("ncollider", "nexplicit", "nexcluded", "ngrid"),
    *("nsweep", "nsweepword"),
)

# Scalar integer options, which follow the sizes in the header.
INT_OPTIONS: tuple[str, ...] = (
    *("opt_iterations", "opt_ls_iterations", "opt_eulerdamp", "opt_warmstart", "opt_solver", "opt_cone"),
    *("opt_multiccd", "opt_reach", "opt_actuation", "opt_noslip_iterations", "opt_midphase", "large_island"),
)


class TableField(NamedTuple):
    """One array of the model table.

    Attributes:
        name: MuJoCo's field name (or the derived name).
        kind: "int" or "real".
        dims: shape, each entry an integer or the name of a size; "nlevel+1" is allowed.
        doc: meaning and unit.
    """

    name: str
    kind: str
    dims: tuple[int | str, ...]
    doc: str


def _i(name: str, *dims: int | str, doc: str = "") -> TableField:
    return TableField(name, "int", dims, doc)


def _r(name: str, *dims: int | str, doc: str = "") -> TableField:
    return TableField(name, "real", dims, doc)


TABLE: tuple[TableField, ...] = (
    # bodies
    _i("body_parentid", "nbody", doc="parent body"),
    _i("body_rootid", "nbody", doc="root of the body's kinematic tree"),
    _i("body_mocapid", "nbody", doc="number of the mocap body, -1 if none"),
    _i("body_jntnum", "nbody", doc="number of joints"),
    _i("body_jntadr", "nbody", doc="first joint, -1 if none"),
    _i("body_dofnum", "nbody", doc="number of dofs"),
    _i("body_dofadr", "nbody", doc="first dof, -1 if none"),
    _i("body_last", "nbody", doc="derived: last body of the subtree, which depth-first numbering makes a range"),
    _i("body_lastdof", "nbody", doc="derived: last dof that moves the body, -1 if none"),
    _r("body_pos", "nbody", 3, doc="frame position in the parent [m]"),
    _r("body_quat", "nbody", 4, doc="frame orientation in the parent"),
    _r("body_ipos", "nbody", 3, doc="inertial frame position in the body [m]"),
    _r("body_iquat", "nbody", 4, doc="inertial frame orientation in the body"),
    _r("body_mass", "nbody", doc="mass [kg]"),
    _r("body_subtreemass", "nbody", doc="mass of the subtree [kg]"),
    _r("body_inertia", "nbody", 3, doc="principal moments of inertia [kg m^2]"),
    _r("body_box", "nbody", 3, doc="derived: sides of the box of the body's mass and inertia [m], for fluid forces"),
    _r("body_gravcomp", "nbody", doc="fraction of the weight that is compensated, 0 where it has no effect"),
    _i("body_fluid", "nbody", doc="derived: do fluid forces act on geoms as ellipsoids, not on the body's box"),
    _i("body_geomadr", "nbody", doc="first geom, -1 if none"),
    _i("body_geomnum", "nbody", doc="number of geoms"),
    _r("body_invweight0", "nbody", 2, doc="mean inverse inertia at qpos0, translation and rotation"),
    _r("body_leastweight", "nbody", doc="derived: least inverse inertia along a line, over that of turning [m^2]"),
    _i("root_body", "nroot", doc="derived: children of the world"),
    _i("level_adr", "nlevel+1", doc="derived: first entry of each tree level in level_body"),
    _i("level_body", "nbody", doc="derived: bodies except the world by depth; the last entry is unused"),
    _i("round_adr", "nround+1", doc="derived: first entry of each round in round_body (simengine.model.rounds)"),
    _i("round_body", "nheld", doc="derived: bodies of each round"),
    _i("round_base", "nheld", doc="derived: the body above that each of them adds"),
    # joints and dofs
    _i("jnt_type", "njnt", doc="MuJoCo's mjtJoint"),
    _i("jnt_qposadr", "njnt", doc="first coordinate"),
    _i("jnt_dofadr", "njnt", doc="first dof"),
    _i("jnt_bodyid", "njnt", doc="body"),
    _i("jnt_actfrclimited", "njnt", doc="is the total actuator force limited; 0 where the stage gravcomp limits it"),
    _i("jnt_gravcomp", "njnt", doc="derived: where the joint's gravity compensation goes (simengine.model.gravcomp)"),
    _r("jnt_pos", "njnt", 3, doc="anchor in the body frame [m]"),
    _r("jnt_axis", "njnt", 3, doc="axis in the body frame"),
    _r("jnt_stiffness", "njnt", doc="spring stiffness [N/m or N m/rad]"),
    _r("jnt_stiffnesspoly", "njnt", 2, doc="coefficients by which stiffness grows with stretch and its square"),
    _r("jnt_range", "njnt", 2, doc="limits [m or rad]"),
    _r("jnt_actfrcrange", "njnt", 2, doc="total actuator force limits [N or N m]"),
    _r("jnt_margin", "njnt", doc="distance at which the limit becomes a constraint [m or rad]"),
    _r("jnt_solref", "njnt", 2, doc="limit solver reference"),
    _r("jnt_solimp", "njnt", 5, doc="limit solver impedance"),
    _i("limit_id", "nlimit", doc="derived: limited hinge and slide joints, then njnt + each limited tendon"),
    _i("dof_bodyid", "nv", doc="body"),
    _i("dof_jntid", "nv", doc="joint"),
    _i("dof_parentid", "nv", doc="parent dof in the tree, -1 if none"),
    # blocks: ranges of dofs that only constraint rows couple; most models have one of all dofs, see model/blocks.py
    _i("block_dofadr", "nblock+1", doc="derived: first dof of each block, then nv"),
    _i("block_adr", "nblock+1", doc="derived: first word of each block of the block-diagonal inertia, then nM"),
    _i("dof_block", "nv", doc="derived: block of the dof"),
    _i("body_block", "nbody", doc="derived: block of the dofs that move the body, -1 if none"),
    _i("dof_treeid", "nv", doc="kinematic tree; all zero if a flag disables islands, which are unions of trees"),
    _r("dof_armature", "nv", doc="added inertia [kg or kg m^2]"),
    _r("dof_damping", "nv", doc="damping [N s/m or N m s/rad]"),
    _r("dof_dampingpoly", "nv", 2, doc="coefficients by which damping grows with speed and its square"),
    _r("dof_invweight0", "nv", doc="mean inverse inertia at qpos0"),
    _r("dof_frictionloss", "nv", doc="largest force of dry friction [N or N m]"),
    _r("dof_solref", "nv", 2, doc="friction solver reference"),
    _r("dof_solimp", "nv", 5, doc="friction solver impedance"),
    _r("qpos0", "nq", doc="reference configuration"),
    _r("qpos_spring", "nq", doc="reference configuration of the springs"),
    # geoms
    _i("geom_type", "ngeom", doc="MuJoCo's mjtGeom"),
    _i("geom_bodyid", "ngeom", doc="body"),
    _r("geom_pos", "ngeom", 3, doc="position in the body frame [m]"),
    _r("geom_quat", "ngeom", 4, doc="orientation in the body frame"),
    _r("geom_size", "ngeom", 3, doc="type-specific sizes [m]"),
    _i("geom_visible", "ngeom", doc="derived: do rays meet the geom"),
    _r("geom_semiaxes", "ngeom", 3, doc="derived: half axes of the ellipsoid that the geom is to a fluid [m]"),
    _r("geom_fluid", "ngeom", 12, doc="coefficients of the ellipsoid model of fluid forces; the first is 0 without"),
    _r("geom_rbound", "ngeom", doc="radius of the bounding sphere [m], 0 for planes"),
    _r("geom_aabb", "ngeom", 6, doc="centre and half lengths of the bounding box in the geom's frame [m]"),
    # sites
    _i("site_bodyid", "nsite", doc="body"),
    _r("site_pos", "nsite", 3, doc="position in the body frame [m]"),
    _r("site_quat", "nsite", 4, doc="orientation in the body frame"),
    # hulls of the meshes that can touch something
    _i("geom_hulladr", "ngeom", doc="derived: first vertex of a mesh's hull"),
    _i("geom_hullnum", "ngeom", doc="derived: number of vertices, 0 for other geoms"),
    _i("geom_faceadr", "ngeom", doc="derived: first flat face of a mesh's hull"),
    _i("geom_facenum", "ngeom", doc="derived: number of flat faces"),
    _i("geom_solidadr", "ngeom", doc="derived: first corner in hull_vert of the solid with which the geom lies flat"),
    _r("hull_vert", "nhullvert", 3, doc="derived: vertices in the geom's frame [m]; unit box and caps after hulls"),
    _i("face_adr", "nface+1", doc="derived: first entry of each face in face_vert"),
    _i("face_vert", "nfacevert", doc="derived: vertices around each face, numbered within their hull"),
    _i("face_span", "nfacevert", 4, doc="derived: four vertices that span the face, from each corner on"),
    _r("face_normal", "nface", 3, doc="derived: outward normal in the geom's frame"),
    _i("vert_adr", "nhullvert+1", doc="derived: first entry of each vertex in vert_face and vert_edge"),
    _i("vert_face", "nfacevert", doc="derived: faces around each vertex"),
    _i("vert_edge", "nfacevert", doc="derived: other ends of the edges at each vertex, numbered within their hull"),
    # cube maps of hulls with many vertices; see model/cubemaps.py
    _i("geom_cubeadr", "ngeom", doc="derived: first cell of the cube map of a mesh's hull"),
    _i("geom_cubeside", "ngeom", doc="derived: its cells along an edge of the cube, 0 if there is none"),
    _r("geom_extent", "ngeom", doc="derived: distance of the farthest vertex of a mesh's hull [m], 0 for other geoms"),
    _i("cube_adr", "ncubecell+1", doc="derived: first entry of each cell in cube_vert"),
    _i("cube_vert", "ncubevert", doc="derived: vertices that may be the farthest, numbered within their hull"),
    _i("cube_pack", "ncubepack", 16, doc="derived: the same in fours, with their places; a pack for each cell first"),
    # height fields: rows run along y, columns along x; heights are relative to the maximum height
    _i("geom_hfieldid", "ngeom", doc="derived: height field of the geom, -1 for other geoms"),
    _i("hfield_nrow", "nhfield", doc="number of rows"),
    _i("hfield_ncol", "nhfield", doc="number of columns"),
    _i("hfield_adr", "nhfield", doc="first entry in hfield_data"),
    _r("hfield_size", "nhfield", 4, doc="half lengths along x and y, maximum height, depth of the base [m]"),
    _r("hfield_data", "nhfielddata", doc="heights from 0 to 1, row by row"),
    # candidate pairs, in MuJoCo's contact order
    _i("cand_geom1", "ncand", doc="derived: geom with the lower type"),
    _i("cand_geom2", "ncand", doc="derived: the other geom"),
    _i("cand_geoms", "ncand", doc="derived: both in one word, the other in its upper half, if the model has few geoms"),
    _i("cand_type", "ncand", doc="derived: index into PAIR_TYPES"),
    _i("cand_slot", "ncand", doc="derived: first contact slot"),
    _i("cand_condim", "ncand", doc="derived: contact dimension"),
    _i("cand_rows", "ncand", doc="derived: constraint rows of a contact"),
    _r("cand_friction", "ncand", 5, doc="derived: combined friction"),
    _r("cand_solref", "ncand", 2, doc="derived: combined solver reference"),
    _r("cand_solreffriction", "ncand", 2, doc="derived: solver reference of a cone's tangents, 0 for the normal's"),
    _r("cand_solimp", "ncand", 5, doc="derived: combined solver impedance"),
    _r("cand_margin", "ncand", doc="derived: distance at which forces begin [m]"),
    _r("cand_gap", "ncand", doc="derived: further distance at which the contact is listed without force [m]"),
    _i(
        "span_adr",
        "nspan+1",
        doc="derived: first pair of each span: pairs of a geom with successive ones, at one margin",
    ),
    _i("span_run", "nspan", doc="derived: run of successive geoms that are the second ones of each span"),
    _i("run_geom", "nrun", 2, doc="derived: first geom of each run, and their number"),
    # clusters of geoms, where these save tests of candidate pairs; see model/clusters.py
    _i("cluster_adr", "ncluster+1", doc="derived: first geom of each cluster in cluster_geom"),
    _i("cluster_geom", "nclustered", doc="derived: geoms, those of a cluster together; the first clusters stand still"),
    _r("cluster_box", "nstill", 6, doc="derived: box round each that stands still, least coordinates first [m]"),
    _i("meeting", "nmeeting", 2, doc="derived: two clusters that have candidate pairs"),
    _i("meeting_adr", "nmeeting+1", doc="derived: first entry of each two clusters in meeting_cand"),
    _i("meeting_cand", "nculled", doc="derived: candidate pairs, those of two clusters together"),
    _r("meeting_reach", "nmeeting", doc="derived: distance from which on no pair of the clusters has contacts [m]"),
    _i("slot_cand", "nslot", doc="derived: candidate pair of each contact slot"),
    _i("slot_sub", "nslot", doc="derived: number of the slot within its pair"),
    # geoms of models whose pairs are found in every step, which have no candidate pairs; see model/colliders.py
    _i("collider", "ncollider", 8, doc="derived: see COLLIDER"),
    _r("collider_prm", "ncollider", 10, doc="margin and gap [m], solmix, solver reference and impedance"),
    _r("geom_friction", "ncollider", 3, doc="friction"),
    _i("explicit_pair", "nexplicit", 3, doc="derived: geoms, the lower type first, and dimension of a pair"),
    _r("explicit_prm", "nexplicit", 16, doc="friction, solver references and impedance, margin and gap [m]"),
    _i("explicit_geoms", "nexplicit", 2, doc="derived: the lower and the higher geom of each explicit pair, sorted"),
    _i("exclude_signature", "nexcluded", doc="excluded pairs of bodies: lower id times 2^16, plus higher id; sorted"),
    _i("kind", 8, 8, 2, doc="derived: index into PAIR_TYPES and most contacts of two types of geoms, the lower first"),
    _r("grid_cell", doc="derived: width of the broadphase's cells [m]"),
    _i("grid_step", 2, doc="derived: difference of the numbers of neighbouring cells along y and z"),
    # fixed tendons: weighted sums of joint coordinates, one term per wrap
    _i("tendon_adr", "ntendon", doc="first wrap over a joint"),
    _i("tendon_dof", "ntendon", doc="derived: first dof that the tendon may depend on; 0 if there is none"),
    _i("tendon_num", "ntendon", doc="number of wraps over joints"),
    _r("tendon_armature", "ntendon", doc="inertia of the length's rate [kg m^2 per unit of length squared]"),
    _r("tendon_stiffness", "ntendon", doc="spring stiffness [N per unit of length]"),
    _r("tendon_damping", "ntendon", doc="damping [N s per unit of length]"),
    _r("tendon_stiffnesspoly", "ntendon", 2, doc="coefficients by which stiffness grows with stretch and its square"),
    _r("tendon_dampingpoly", "ntendon", 2, doc="coefficients by which damping grows with speed and its square"),
    _r("tendon_lengthspring", "ntendon", 2, doc="range of lengths in which the spring has no force"),
    _r("tendon_range", "ntendon", 2, doc="limits of the length"),
    _r("tendon_margin", "ntendon", doc="distance at which the limit becomes a constraint"),
    _r("tendon_solref_lim", "ntendon", 2, doc="limit solver reference"),
    _r("tendon_solimp_lim", "ntendon", 5, doc="limit solver impedance"),
    _r("tendon_invweight0", "ntendon", doc="inverse inertia at qpos0"),
    _r("tendon_length0", "ntendon", doc="length at qpos0"),
    _r("tendon_frictionloss", "ntendon", doc="largest force of dry friction"),
    _r("tendon_solref_fri", "ntendon", 2, doc="friction solver reference"),
    _r("tendon_solimp_fri", "ntendon", 5, doc="friction solver impedance"),
    _i("wrap_qposadr", "nwrap", doc="derived: coordinate of the wrap's joint"),
    _i("wrap_dofadr", "nwrap", doc="derived: dof of the wrap's joint"),
    _i("wrap_tenid", "nwrap", doc="derived: tendon"),
    _r("wrap_prm", "nwrap", doc="coefficient of the joint's coordinate"),
    _i("jnt_wrapnum", "njnt", doc="derived: number of wraps over the joint"),
    _i("jnt_wrapadr", "njnt", doc="derived: first of them in wrap_byjnt"),
    _i("wrap_byjnt", "nwrap", doc="derived: wraps ordered by joint, then by number"),
    # equality constraints and friction losses
    _i("eq_type", "neq", doc="MuJoCo's mjtEq"),
    _i("eq_active0", "neq", doc="is the constraint active at the start"),
    _i("eq_rows", "neq", doc="derived: constraint rows while active, 0 if no dof moves it or a flag disables it"),
    _i("eq_obj", "neq", 2, doc="derived: bodies, joints or tendons; -1 if there is no second one"),
    _r("eq_anchor", "neq", 2, 3, doc="derived: constrained point in the frame of each body [m]"),
    _r("eq_quat", "neq", 2, 4, doc="derived: constrained orientation in the frame of each body"),
    _r("eq_data", "neq", 12, doc="polynomial coefficients in the first five, torque scale of welds in the eleventh"),
    _r("eq_solref", "neq", 2, doc="solver reference"),
    _r("eq_solimp", "neq", 5, doc="solver impedance"),
    _i("friction_id", "nfriction", doc="derived: dofs with friction loss, then nv + each such tendon"),
    # spatial tendons: sequences of pieces, each from one site to the next
    _i("tendon_pathadr", "ntendon", doc="derived: first piece"),
    _i("tendon_pathnum", "ntendon", doc="derived: number of pieces"),
    _i("path_tenid", "npath", doc="derived: tendon"),
    _i("path_site", "npath", 2, doc="derived: sites at the ends"),
    _i("path_geom", "npath", doc="derived: sphere or cylinder that the piece wraps around, -1 if none"),
    _i("path_side", "npath", doc="derived: site on the side where the path wraps, or inside the geom; -1 if none"),
    _r("path_scale", "npath", doc="derived: factor on the piece's length, from the pulley before it"),
    _i("path_group", "npathgroup+1", doc="derived: first tendon of each group whose pieces are in scratch at a time"),
    # derivatives of tendons' lengths that may differ from zero; see model/slopes.py
    _i("ten_J_rowadr", "ntendon+1", doc="derived: first entry of each tendon in ten_J_entry"),
    _i("ten_J_entry", "nJten", 2, doc="derived: tendon and dof, sorted"),
    _i("ten_J_coladr", "nv+1", doc="derived: first entry of each dof in ten_J_rowind"),
    _i("ten_J_rowind", "nJten", doc="derived: tendons, by dof"),
    _i("ten_J_partadr", "nJten+1", doc="derived: first part of each entry in ten_J_part"),
    _i("ten_J_part", "nJpart", 2, doc="derived: piece; does the dof move its first site (1), second (2), geom (4)"),
    # the same for actuators' lengths
    _i("moment_rowadr", "nu+1", doc="derived: first entry of each actuator in moment_entry"),
    _i("moment_entry", "nJmom", 2, doc="derived: actuator and dof, sorted"),
    _i("moment_coladr", "nv+1", doc="derived: first entry of each dof in moment_rowind"),
    _i("moment_rowind", "nJmom", doc="derived: actuators, by dof"),
    # actuators on joints and fixed tendons; a moment is an actuator's gear times the coefficient of one joint
    _i("jnt_momentnum", "njnt", doc="derived: number of moments about the joint"),
    _i("jnt_momentadr", "njnt", doc="derived: first of them; they are ordered by joint, then by actuator"),
    _i("moment_actuator", "nmoment", doc="derived: actuator"),
    _r("moment", "nmoment", doc="derived: generalised force of the joint per unit of actuator force"),
    _i("actuator_lengthid", "nu", doc="derived: joint, or njnt + tendon"),
    _i("actuator_ctrllimited", "nu", doc="is the control clamped"),
    _i("actuator_forcelimited", "nu", doc="is the force clamped"),
    _r("actuator_ctrlrange", "nu", 2, doc="control limits"),
    _r("actuator_forcerange", "nu", 2, doc="force limits [N or N m]"),
    _r("actuator_gear", "nu", 6, doc="gear ratio; a force and a torque for free joints and sites"),
    _r("actuator_gainprm", "nu", 9, doc="gain: constant, or by constant, length and velocity, or a muscle's"),
    _r("actuator_biasprm", "nu", 9, doc="bias: constant, length, velocity, or a muscle's"),
    # actuators of every kind
    _i("actuator_trntype", "nu", doc="MuJoCo's mjtTrn"),
    _i("actuator_trnid", "nu", 2, doc="joint, tendon or site, and the reference or slider site, -1 if none"),
    _i("actuator_dyntype", "nu", doc="MuJoCo's mjtDyn"),
    _i("actuator_gaintype", "nu", doc="MuJoCo's mjtGain"),
    _i("actuator_biastype", "nu", doc="MuJoCo's mjtBias"),
    _i("actuator_actadr", "nu", doc="activation, -1 if none"),
    _i("actuator_actlimited", "nu", doc="is the activation clamped"),
    _i("actuator_actearly", "nu", doc="does the force depend on the activation at the end of the step"),
    _i("actuator_disabled", "nu", doc="derived: is the actuator switched off by its group or by a flag"),
    _i("act_actuatorid", "na", doc="derived: actuator"),
    _r("actuator_dynprm", "nu", 3, doc="time constants [s]; a muscle's width of the transition between them"),
    _r("actuator_actrange", "nu", 2, doc="limits of the activation"),
    _r("actuator_lengthrange", "nu", 2, doc="feasible lengths, a muscle's operating range"),
    _r("actuator_period", "nu", doc="derived: length of a full turn, for position servos on spatial rotations; else 0"),
    _r("actuator_cranklength", "nu", doc="length of a slider-crank's rod [m]"),
    _i("tendon_actfrclimited", "ntendon", doc="is the total actuator force limited"),
    _r("tendon_actfrcrange", "ntendon", 2, doc="total actuator force limits [N]"),
    # sensors; the second of the two frames is the reference, whose body is -1 if there is none
    _i("sensor_type", "nsensor", doc="MuJoCo's mjtSensor, -1 where sensors are disabled"),
    _i("sensor_objid", "nsensor", doc="what is measured: joint, tendon, actuator or body"),
    _i("sensor_datatype", "nsensor", doc="MuJoCo's mjtDataType"),
    _i("sensor_adr", "nsensor", doc="first entry in sensordata"),
    _i("sensor_dim", "nsensor", doc="number of entries"),
    _r("sensor_cutoff", "nsensor", doc="bound of real and positive values, 0 for none"),
    _i("sensor_bodyid", "nsensor", 2, doc="derived: bodies that carry the frames"),
    _r("sensor_pos", "nsensor", 2, 3, doc="derived: positions of the frames in their bodies [m]"),
    _i("sensor_site", "nsensor", doc="derived: shape (mjtGeom) of the site whose volume is tested, -1 for none"),
    _i("sensor_match", "nsensor", 2, 3, doc="derived: criteria for the geoms of a contact, see model/sensors.py"),
    _i("sensor_prm", "nsensor", 3, doc="contact sensors: data entries, reduction, number of contacts"),
    _r("sensor_size", "nsensor", 3, doc="derived: size of sensor_site [m]"),
    _i("sensor_distadr", "nsensor+1", doc="derived: first entry of each sensor in distance_pair"),
    _i("distance_pair", "ndistance", 4, doc="derived: see DistancePair of model/distances.py"),
    _r("sensor_lens", "nsensor", 4, doc="derived: focal lengths, half resolution of a camera, x then y [pixels]"),
    _r("sensor_quat", "nsensor", 2, 4, doc="derived: orientations of the frames in their bodies"),
    _i("sweep_order", "nsweep", "nsweepword", doc="derived: orders of the first sweeps of PGS; see model/sweeps.py"),
    # options
    _r("opt_timestep", doc="step [s]"),
    _r("opt_leastref", doc="derived: lower bound of the time constant in solref [s]; 0 if refsafe is disabled"),
    _r("opt_gravity", 3, doc="gravity [m/s^2]"),
    _r("opt_density", doc="density of the fluid [kg/m^3]"),
    _r("opt_viscosity", doc="viscosity of the fluid [Pa s]"),
    _r("opt_wind", 3, doc="velocity of the fluid, world frame [m/s]"),
    _r("opt_magnetic", 3, doc="magnetic flux, world frame"),
    _r("opt_tolerance", doc="solver tolerance"),
    _r("opt_ls_tolerance", doc="line-search tolerance"),
    _r("opt_noslip_tolerance", doc="tolerance of the noslip solver"),
    _r("opt_impratio", doc="friction to normal impedance ratio"),
    _r("stat_meaninertia", doc="mean diagonal inertia, scales the solver's tolerance"),
)

COLLIDER: tuple[str, ...] = (*("contype", "conaffinity", "weld", "parent", "moves", "condim", "priority", "lastdof"),)
"""Entries of `collider` for a geom. `weld` is the weld id of its body; `parent` is that of the body's parent, or -1
without the parent filter; `moves` says whether the welded body has dofs; `lastdof` is the last dof that moves the
body."""

TABLE_BY_NAME: dict[str, TableField] = {f.name: f for f in TABLE}


def resolve(dims: tuple[int | str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of `dims` for given sizes; "nlevel+1" adds one to a size."""
    return tuple([sizes[size] + more if size else more for size, more in terms(dims)])


@cache
def terms(dims: tuple[int | str, ...]) -> tuple[tuple[str, int], ...]:
    """The size and the number whose sum each of `dims` is; the size is empty where there is none."""
    parts = (("", "", str(dim)) if isinstance(dim, int) else dim.partition("+") for dim in dims)
    return tuple((size, int(more or 0)) for size, _, more in parts)
