"""The plan of a step: its decisions, emission that follows it, and its printed form."""

from __future__ import annotations

import json
import re

import pytest

from simengine import BackendError, Simulation
from simengine.backends.host import HostBackend
from simengine.model import ModelTable, load_table
from simengine.physics.stage import Form
from simengine.plan.evaluation import only_for
from simengine.plan.every_kernel import all_kernels
from simengine.plan.islands import most_dense_dofs, most_islands
from simengine.plan.issue import Issue, decide_issuing
from simengine.plan.launches import Await, Launch
from simengine.plan.scratch import scratch_plan, works_in_global_memory
from simengine.plan.selection import FEW_WORLDS_BY_TWO_WARPS, MERGED_WORLDS
from simengine.plan.step_plan import StepPlan, plan_step
from simengine.plan.tiles import COUNTING_KERNELS
from simengine.plan.variants import with_branches
from simengine.zoo import pile_xml
from tests.emission.test_memory import GpuOnPaper
from tests.helpers.humanoids import humanoid_xml
from tests.helpers.islands import heap, touching_arms
from tests.models import OWN, gymnasium_path

NOTHING = frozenset[str]()
EVERYTHING = frozenset({"sensordata", "cfrc_ext", "qacc", "cacc", "energy"})


def source_of(name: str) -> str:
    if name == "cones":
        return pile_xml(5, "mixed").replace("<option", '<option cone="elliptic"', 1)
    return heap(12) if name == "heap" else str(OWN[name] if name in OWN else gymnasium_path(name))


def model_of(name: str) -> ModelTable:
    return load_table(source_of(name))


def on_gpu(name: str, worlds: int, executor: str = "auto", emission: str = "auto") -> StepPlan:
    model, gpu = model_of(name), GpuOnPaper()
    issuing = decide_issuing([model], gpu, executor, emission, {})
    return plan_step(model, worlds, gpu, "float32", issuing, shards=1, neighbours=[worlds])


def calls(plan: StepPlan, wanted: frozenset[str] = NOTHING) -> list[str]:
    evaluations = plan.facts(wanted)["evaluations"]
    return [row["call"] for evaluation in evaluations for row in evaluation["launches"] if "call" in row]


@pytest.mark.parametrize(
    ("name", "executor", "emission", "issue"),
    [
        ("ant", "serial", "whole", Issue.STEP_KERNEL),
        ("ant", "device", "whole", Issue.AHEAD),
        ("ant", "serial", "counted", Issue.COUNTED),
        ("ant", "serial", "ahead", Issue.AHEAD),
    ],
)
def test_the_way_of_issuing_is_decided_once(name: str, executor: str, emission: str, issue: Issue) -> None:
    plan = on_gpu(name, 64, executor, emission)
    assert plan.issue is issue
    assert (plan.step_kernel is not None) == (issue is Issue.STEP_KERNEL)


def test_on_the_host_a_whole_step_is_a_program() -> None:
    for emission, issue in (("whole", Issue.PROGRAM), ("counted", Issue.COUNTED)):
        assert decide_issuing([model_of("ant")], HostBackend(), "serial", emission, {}).issue is issue


def test_steps_by_islands_go_ahead_of_counts_unless_pairs_are_found_or_workers_run_them() -> None:
    assert on_gpu("heap", 64, "graph-cached").facts()["issue"] == "ahead"
    plan = on_gpu("heap", 64, "device")
    assert not plan.can_go_ahead
    assert plan.facts()["issue"] == "counted"
    waits = [item.scan.name for item in plan.step(64, NOTHING, False)[0].launches if isinstance(item, Await)]
    assert waits == ["scan", "only_scan_islands"]
    model, gpu = load_table(pile_xml(80, "sphere")), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "streams", "ahead", {})
    assert issuing.waits
    assert not plan_step(model, 8, gpu, "float32", issuing, shards=1).can_go_ahead


def test_launches_ahead_have_room_for_the_most_islands() -> None:
    """Of ten free bodies, nobody knows which touch: there are at most ten islands, or five of two bodies, and so on."""
    model = GpuOnPaper().form_of(load_table(pile_xml(10, "mixed")), "float32")
    assert most_islands(model) == (10, 5, 3, 0, 0, 1, 0)
    with_arms = GpuOnPaper().form_of(load_table(touching_arms(3)), "float32")
    assert sum(most_islands(with_arms)) > 3


@pytest.mark.parametrize("name", ["ant", "rubble", "heap"])
def test_an_evaluation_for_some_fields_leaves_out_what_they_do_not_need(name: str) -> None:
    issuing = decide_issuing([model_of(name)], HostBackend(), "serial", "whole", {})
    plan = plan_step(model_of(name), 8, HostBackend(), "float32", issuing, shards=1, neighbours=[8])
    produced = {}
    for field in ("xpos", "ncon", "qacc"):
        wanted = frozenset({field})
        evaluation = plan.evaluation(8, "", 0, wanted, False)
        pruned = only_for(evaluation, wanted)
        assert [item for item in evaluation.launches if item in pruned.launches] == list(pruned.launches)
        produced[field] = {made for kernel in pruned.kernels for made in kernel.produced}
        assert field in produced[field]
    assert not produced["xpos"] & {"contact_pos", "qacc"}
    assert produced["xpos"] < produced["qacc"]
    assert "contact_pos" in produced["qacc"]


def test_launches_are_merged_where_worlds_are_few() -> None:
    few, many = (calls(on_gpu("ant", worlds, "graph-cached", "ahead")) for worlds in (64, 8192))
    assert len([name for name in few if name.startswith("finish")]) == 1
    assert len([name for name in many if name.startswith("finish")]) > 4
    assert sum(name.startswith(("plane", "narrow")) for name in few) == 1


def test_forms_follow_from_the_model() -> None:
    def forms(name: str) -> set[Form | None]:
        plan = on_gpu(name, 8192, emission="counted")
        return {stage.form for kernel in plan.kernels(NOTHING) for stage in kernel.stages}

    assert forms("ant") == {None, Form.WIDE}
    assert forms("ropes") == {None, Form.GENERAL, Form.WIDE}
    assert {Form.BLOCKS, Form.LARGE} <= forms("heap")


@pytest.mark.parametrize(("nv", "size"), [(35, 36), (36, 36), (37, 40), (64, 64)])
def test_kernels_have_the_size_of_matrices_in_registers(nv: int, size: int) -> None:
    model, gpu = load_table(humanoid_xml(nv, 'integrator="implicitfast"')), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "auto", "auto", {})

    def scratch(dtype: str) -> dict[str, int]:
        kernels = plan_step(model, 8192, gpu, dtype, issuing, shards=1).kernels(NOTHING)
        plans = {k.name: scratch_plan(k, model.sizes, 64, gpu) for k in kernels if k.solves_symmetric}
        return {re.sub("_unfactored|_no_cones|_of_rows", "", name): plan.words for name, plan in plans.items()}

    wide, others = scratch("float32"), scratch("float64")
    in_memory = f"finish_newton_general_J_in_memory_matrix_{size}"
    alone = {f"only_acceleration_matrix_{size}", in_memory}
    assert set(wide) == {f"{name}_matrix_{size}" for name in others if not name.startswith("smooth")} | alone
    assert "finish_newton_general" in others
    # the Hessian is no longer in shared memory, but four of its rows are in part
    saved = others["finish_newton_general"] - wide[f"finish_newton_general_matrix_{size}"]
    assert saved >= nv**2 - 4 * (size - 32)


@pytest.mark.parametrize(("worlds", "there"), [(8192, True), (512, False)])
def test_worlds_of_many_rows_have_the_jacobian_in_memory_where_size_classes_have_launches(
    worlds: int, there: bool
) -> None:
    model, gpu = load_table(humanoid_xml(40)), GpuOnPaper()
    plan = plan_step(model, worlds, gpu, "float32", decide_issuing([model], gpu, "auto", "auto", {}), shards=1)
    (evaluation,) = plan.step(worlds, NOTHING, True)
    launches = [item for item in evaluation.launches if isinstance(item, Launch)]
    found = {item.nrow for item in launches if "J_in_memory" in item.kernel.name}
    assert found == ({128} if there else set())


@pytest.mark.parametrize(
    ("dtype", "form"), [("float32", ["block_84_more", "matrix_56_64", "32"]), ("float64", ["64", "32"])]
)
def test_solvers_of_islands_have_the_size_of_their_matrices(dtype: str, form: list[str]) -> None:
    gpu = GpuOnPaper()
    model = gpu.form_of(load_table(touching_arms(3)), dtype)  # of 27 dofs each
    plan = plan_step(model, 8, gpu, dtype, decide_issuing([model], gpu, "auto", "auto", {}), neighbours=[8])
    dense = [name for name in calls(plan) if name.startswith("solve_newton_unilateral")]
    assert dense == [f"solve_newton_unilateral_islands_{name}" for name in form]
    assert most_dense_dofs(model, 64) == 54
    assert any(name.startswith("solve_large") for name in calls(plan)) == (dtype == "float64")


@pytest.mark.parametrize(
    ("solver", "dtype", "most"), [("Newton", "float32", 32), ("CG", "float64", 32), ("PGS", "float32", 64)]
)
def test_islands_of_free_bodies_have_a_sparse_factor_from_33_dofs_on(solver: str, dtype: str, most: int) -> None:
    body = "<body><freejoint/><geom size='0.1'/></body>"
    option = f"<option solver='{solver}'/>"
    few, many = (load_table(f"<mujoco>{option}<worldbody>{body * n}</worldbody></mujoco>") for n in (12, 65))
    assert GpuOnPaper().form_of(few, dtype).large_island == most
    assert GpuOnPaper().form_of(many, dtype).large_island == (128 if solver == "Newton" else 64)


@pytest.mark.parametrize(("bodies", "by_islands"), [(8, False), (9, True), (10, True)])
@pytest.mark.parametrize("solver", ["Newton", "CG", "PGS"])
def test_a_gpu_solves_nine_free_bodies_by_islands_and_no_fewer(bodies: int, by_islands: bool, solver: str) -> None:
    body = "<body><freejoint/><geom size='0.1'/></body>"
    model = load_table(f"<mujoco><option solver='{solver}'/><worldbody>{body * bodies}</worldbody></mujoco>")
    form = GpuOnPaper().form_of(model, "float32")
    assert not model.has_islands
    assert form.has_islands == (by_islands and solver != "PGS")
    assert form.large_island == (32 if form.has_islands else 64)
    model.solve_by_islands(False)
    assert not GpuOnPaper().form_of(model, "float32").has_islands


def test_a_gpu_solves_bodies_beside_a_hinge_as_one_problem_up_to_64_dofs() -> None:
    body = "<body><freejoint/><geom size='0.1'/></body>"
    model = load_table(f"<mujoco><worldbody>{body * 10}<body><joint/><geom size='0.1'/></body></worldbody></mujoco>")
    assert model.nv == 61
    assert not GpuOnPaper().form_of(model, "float32").has_islands


def chain_beside_a_ball(links: int, equality: str = "") -> ModelTable:
    """A chain of hinges in a world with a free ball."""
    link, end = "<body pos='0.1 0 0'><joint axis='0 1 0'/><geom size='0.04' contype='0'/>", "</body>"
    ball = "<body name='ball' pos='0 0 1'><freejoint/><geom size='0.1'/></body>"
    text = f"<worldbody>{ball}{link * links}{end * links}</worldbody><equality>{equality}</equality>"
    return load_table(f"<mujoco>{text}</mujoco>")


@pytest.mark.parametrize(
    ("links", "equality", "dtype", "by_islands"),
    [
        (60, "", "float64", True),
        (100, "", "float32", True),
        (100, "", "float64", False),
        (100, "<connect body1='ball' anchor='0 0 0'/>", "float32", False),
        (130, "", "float32", False),
        (300, "", "float32", True),
    ],
)
def test_a_gpu_solves_a_tree_beyond_dense_islands_along_branches(
    links: int, equality: str, dtype: str, by_islands: bool
) -> None:
    model, gpu = chain_beside_a_ball(links, equality), GpuOnPaper()
    form = gpu.form_of(model, dtype)
    assert model.has_islands
    assert form.has_islands == by_islands
    plan = plan_step(form, 512, gpu, dtype, decide_issuing([form], gpu, "auto", "auto", {}), shards=1)
    assert any(k.along_branches for k in plan.kernels(NOTHING)) == (not by_islands)
    model.solve_by_islands(True)
    assert gpu.form_of(model, dtype).has_islands


def test_a_chosen_size_of_dense_islands_is_kept() -> None:
    model = load_table(touching_arms(3))
    model.solve_dense_up_to(16)
    assert GpuOnPaper().form_of(model, "float32").large_island == 16


def test_large_worlds_of_one_tree_have_matrices_along_branches_and_no_factor() -> None:
    model, gpu = load_table(humanoid_xml(70, 'noslip_iterations="2"')), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "auto", "auto", {})
    plan = plan_step(model, 512, gpu, "float32", issuing, shards=1)
    kernels = plan.kernels(NOTHING)
    others = {"noslip_pyramids_branches", "euler_factored_branches"}
    assert {k.name for k in kernels if k.solves_symmetric} == {k.name for k in kernels if k.along_branches} - others
    assert others <= {k.name for k in kernels}
    assert not any("qLD" in (*k.reads, *k.produced) for k in kernels)
    assert "only_factor_m" in {k.name for k in plan.kernels(frozenset({"qLD"}))}
    many = plan_step(model, 513, gpu, "float32", issuing, shards=1)
    assert "inertia_by_block" in {k.name for k in kernels}
    assert "inertia_general_branches" in {k.name for k in many.kernels(NOTHING)}


def test_the_matrix_of_euler_is_factored_beside_the_solver_of_few_worlds() -> None:
    model, gpu = load_table(humanoid_xml(70)), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "auto", "auto", {})
    few, many = (plan_step(model, worlds, gpu, "float32", issuing, shards=1) for worlds in (512, 513))
    names = calls(few)
    solvers = [i for i, name in enumerate(names) if "finish" in name]
    assert names.index("only_euler_factor_branches") < min(solvers)
    assert names.index("euler_factored_branches") > max(solvers)
    assert "only_euler_branches" in calls(many)
    assert not [k for k in many.kernels(NOTHING) if "damped_branches" in k.produced]


@pytest.mark.parametrize(("name", "wanted", "there"), [("ropes", (), False), ("ropes", ("site_xmat",), True)])
def test_frames_of_sites_are_computed_where_somebody_reads_them(
    name: str, wanted: tuple[str, ...], there: bool
) -> None:
    kernels = on_gpu(name, 8192).kernels(frozenset(wanted))
    assert any("site_xpos" in kernel.produced for kernel in kernels) == there
    assert any("ten_J" in kernel.produced for kernel in kernels)


def test_actuators_at_sites_read_their_frames() -> None:
    assert any("site_xmat" in kernel.produced for kernel in on_gpu("actuators", 8192).kernels(NOTHING))


def test_small_models_have_no_kernels_of_their_size() -> None:
    assert not any("matrix" in kernel.name for kernel in on_gpu("ant", 8192).kernels(NOTHING))


def test_several_warps_solve_worlds_of_many_rows_of_every_type() -> None:
    launches = [
        item for item in on_gpu("cones", 8192).step(8192, NOTHING, True)[0].launches if isinstance(item, Launch)
    ]
    warps = {item.kernel.solver_warps: item.nrow for item in launches if item.name.startswith("finish")}
    assert set(warps) == {0, 2, 4}
    assert warps[0] <= 32 < warps[2]
    assert not any(kernel.solver_warps for kernel in on_gpu("ant", 8192).kernels(NOTHING))


@pytest.mark.parametrize("emission", ["auto", "stages"])
@pytest.mark.parametrize(("worlds", "lanes"), [(512, 64), (FEW_WORLDS_BY_TWO_WARPS, 64), (8192, 32)])
def test_one_warp_does_the_work_of_two_where_there_are_many_worlds(worlds: int, lanes: int, emission: str) -> None:
    launches = on_gpu("cones", worlds, emission=emission).step(worlds, NOTHING, emission == "auto")[0].launches
    solvers = [item for item in launches if isinstance(item, Launch) and item.kernel.solver_warps]
    forms = {item.listed.column: (item.kernel.solver_warps, item.kernel.own_lanes) for item in solvers if item.listed}
    assert forms == {"rows_64": (2, lanes), "rows_128": (2, 64), "rows_more": (4, 128)}


def test_a_launch_more_for_what_is_wanted() -> None:
    plan = on_gpu("ant", 8192, emission="counted")
    more = set(calls(plan, frozenset({"cfrc_ext"}))) - set(calls(plan))
    assert more == {"rne_post"}
    first, last = plan.facts(frozenset({"cfrc_ext"}))["evaluations"]
    assert (first["numbers"], last["numbers"]) == ([1, 2, 3], [4])


@pytest.mark.parametrize("name", ["ant", "tendons", "two_arms", "heap", "crates"])
def test_what_is_emitted_follows_the_plan(name: str) -> None:
    keep = ("cfrc_ext",)
    with_plan = Simulation(source_of(name), 6, backend="host", executor="serial", emission="counted", keep=keep)
    with_plan.step(5)
    planned = [
        item.name
        for evaluation in with_plan.schedule.plan().step(6, frozenset(keep), False)
        for item in evaluation.launches
        if isinstance(item, Launch)
    ]
    left = iter(planned)
    emitted = [call.name for call in with_plan.schedule.kernel_list]
    assert len(emitted) >= 5
    assert all(call in left for call in emitted), "a call was emitted that the plan does not have there"


@pytest.mark.parametrize("name", ["ant", "tendons", "heap", "crates"])
def test_the_plan_is_text_and_plain_values(name: str) -> None:
    plan = on_gpu(name, 64)
    text = str(plan)
    assert all(call in text for call in calls(plan))
    assert text.count("-- await") == str(plan.facts()["evaluations"]).count("'await'")
    assert max(map(len, text.splitlines())) < 200
    json.dumps(plan.facts(EVERYTHING))


def test_backend_jax_has_no_plan() -> None:
    with pytest.raises(BackendError, match="host"):
        Simulation(source_of("two_arms"), 1, backend="jax").schedule.plan()


def test_a_block_works_on_many_tendons(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("by_block" in call for call in calls(on_gpu("ragdoll", 64)))
    monkeypatch.setattr("simengine.plan.step_plan.FEWEST_ENTRIES_OF_A_BLOCK", 1)
    apart = on_gpu("ragdoll", 8192)
    found = calls(apart)
    assert found.index("tendons_by_block") < found.index("actuators_by_block")
    (smooth,) = (call for call in found if call.startswith("smooth"))
    assert smooth.startswith("smooth_driven")
    assert found.index("actuators_by_block") < found.index(smooth)
    kernels = {kernel.name: kernel for kernel in apart.kernels(NOTHING)}
    assert "forces_driven" in calls(on_gpu("ragdoll", 64))
    assert not works_in_global_memory(kernels["tendons_by_block"], apart.lanes, apart.backend)


def test_fields_whose_zeros_nobody_writes_are_in_memory() -> None:
    of_gpu = (*all_kernels(), *with_branches())
    kernels = {"ten_J": (*of_gpu, *COUNTING_KERNELS), "actuator_moment": of_gpu}
    for name, producing in kernels.items():
        assert not [kernel.name for kernel in producing if name in kernel.in_scratch]


def test_small_shards_have_more_lanes_for_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simengine.plan.step_plan.FEWEST_PAIRS_OF_A_BLOCK", 1)
    few, some, many = (calls(on_gpu("rubble", worlds)) for worlds in (512, MERGED_WORLDS, 2 * MERGED_WORLDS))
    for name, there in {
        "list_by_block_no_hfields": (True, True, False),
        "list_near_no_hfields": (False, False, True),
        "count_near": (False, False, True),
        "distance_in_eight": (True, False, False),
        "depth_by_warp": (True, True, False),
        "touch_in_eight": (True, False, False),
    }.items():
        assert (name in few, name in some, name in many) == there


def test_a_block_lists_the_pairs_of_very_few_worlds_from_fewer_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = model_of("rubble").ncand
    for of_few, of_more, few, some in (
        (pairs, pairs, True, True),
        (pairs, pairs + 1, True, False),
        (pairs + 1, pairs + 1, False, False),
    ):
        monkeypatch.setattr("simengine.plan.step_plan.FEWEST_PAIRS_OF_FEW_WORLDS", of_few)
        monkeypatch.setattr("simengine.plan.step_plan.FEWEST_PAIRS_OF_A_BLOCK", of_more)
        for worlds, there in ((512, few), (MERGED_WORLDS, some)):
            assert ("list_by_block_no_hfields" in calls(on_gpu("rubble", worlds))) == there
