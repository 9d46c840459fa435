"""A whole training: it learns, and gives the same bytes every time, interrupted or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simengine_training
from simengine_training import checkpoint, run
from simengine_training.checkpoint import DamagedCheckpointWarning
from simengine_training.curve import Row
from simengine_training.errors import TrainingError
from simengine_training.folder import evaluated_policy, read_summary
from simengine_training.numpy_policy import NumpyPolicy
from tests.training import point

FILES = ("curve.csv", "evaluations.csv", "policy.npz", "summary.json", "curve.png")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> simengine_training.Result:
    """A training from beginning to end, which several tests look at."""
    return simengine_training.train(tiny(), tmp_path_factory.mktemp("training") / "deep" / "out")


def assert_same(one: Path, other: Path) -> None:
    """Compare files of two trainings byte by byte."""
    policies = [sorted(path.name for path in (folder / "policies").iterdir()) for folder in (one, other)]
    assert policies[0] == policies[1]
    for name in (*FILES, *(f"policies/{file}" for file in policies[0])):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def interrupted_after(updates: int) -> Any:
    """A function for rows that stops the training as Ctrl-C does."""

    def stop(row: Row) -> None:
        if row["update"] == updates:
            raise KeyboardInterrupt

    return stop


def test_it_learns_to_reach_the_goal(tmp_path: Path, tiny: Any) -> None:
    arguments = tiny(
        num_envs=32,
        rollout_steps=32,
        total_steps=32 * 32 * 30,
        learning_rate=3e-3,
        eval_episodes=64,
        checkpoint_every=1,
    )
    result = simengine_training.train(arguments, tmp_path / "out")
    first, last = result.evaluations[0], result.evaluations[-1]
    # The goal is at most 10 steps of at most 0.2 away; standing still costs 0.5 in each of 20 steps.
    assert first["return_mean"] < -5
    assert last["return_mean"] > -2.7
    assert last["length_mean"] < 8
    assert result.summary["best"]["return_mean"] >= last["return_mean"]
    early, late = (np.mean([row["return_mean"] for row in rows]) for rows in (result.rows[:3], result.rows[-3:]))
    assert late > early + 2


def test_a_rate_of_nothing_learns_nothing(tmp_path: Path, tiny: Any) -> None:
    """So that the test above measures learning, not what the environment gives away."""
    result = simengine_training.train(tiny(learning_rate=1e-12, normalize_observations=False), tmp_path / "out")
    returns = [row["return_mean"] for row in result.evaluations]
    np.testing.assert_allclose(returns, returns[0], rtol=1e-5)


def test_same_seed_same_bits_other_seed_others(whole: simengine_training.Result, tmp_path: Path, tiny: Any) -> None:
    again, other = (simengine_training.train(tiny(seed=seed), tmp_path / str(seed)) for seed in (0, 1))
    assert_same(whole.folder, again.folder)
    assert (whole.folder / "curve.csv").read_bytes() != (other.folder / "curve.csv").read_bytes()


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_a_resumed_training_is_the_uninterrupted_one(
    stop: int, whole: simengine_training.Result, tmp_path: Path, tiny: Any
) -> None:
    """It is stopped before the first checkpoint, between two, in an evaluation, and just before the end."""
    with pytest.raises(KeyboardInterrupt):
        simengine_training.train(tiny(), tmp_path, interrupted_after(stop))
    resumed = simengine_training.resume(tmp_path)
    assert resumed.finished
    assert [row["update"] for row in resumed.rows] == [1, 2, 3, 4, 5, 6]
    assert_same(whole.folder, tmp_path)


@pytest.mark.slow
def test_pieces_of_no_time_are_the_whole(whole: simengine_training.Result, tmp_path: Path, tiny: Any) -> None:
    """A piece does at least one update, and stops between checkpoints without evaluating."""
    result = simengine_training.train(tiny(), tmp_path, max_seconds=0.0)
    pieces = 1
    while not result.finished:
        assert result.summary["updates"] == pieces
        result = simengine_training.resume(tmp_path, max_seconds=0.0)
        pieces += 1
    assert pieces == 6
    assert_same(whole.folder, tmp_path)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    whole: simengine_training.Result, tmp_path: Path, tiny: Any
) -> None:
    with pytest.raises(KeyboardInterrupt):
        simengine_training.train(tiny(), tmp_path, interrupted_after(5))
    newest = sorted((tmp_path / "checkpoints").iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    with pytest.warns(DamagedCheckpointWarning, match=r"00000004\.npz is damaged .*; the one before it is taken"):
        simengine_training.resume(tmp_path)
    assert_same(whole.folder, tmp_path)


def test_folder_holds_everything(whole: simengine_training.Result, tiny: Any) -> None:
    result, folder = whole, whole.folder
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert simengine_training.Arguments(**summary["arguments"]) == tiny()
    assert (summary["updates"], summary["env_steps"], summary["finished"]) == (6, 768, True)
    assert [row["update"] for row in result.rows] == [1, 2, 3, 4, 5, 6]
    assert [row["update"] for row in result.evaluations] == [2, 4, 6]
    assert summary["best"]["return_mean"] == max(row["return_mean"] for row in result.evaluations)
    again = run.finished(folder)
    assert repr(again.rows) == repr(result.rows)  # in which NaN equals NaN
    assert (again.evaluations, again.summary) == (result.evaluations, result.summary)
    assert len(list((folder / "checkpoints").iterdir())) == 3


def test_the_best_policy_is_the_one_that_was_evaluated_best(tmp_path: Path, tiny: Any) -> None:
    """A large rate makes the last policy worse than an earlier one."""
    changes = {"learning_rate": 0.3, "anneal": False, "seed": 1}
    result = simengine_training.train(tiny(**changes, total_steps=8 * 16 * 12), tmp_path)
    best = result.summary["best"]["update"]
    assert best < result.summary["last"]["update"]
    kept = [NumpyPolicy.load(evaluated_policy(tmp_path, row["update"])) for row in result.evaluations]
    same = [bool((policy.weights[0] == result.policy.weights[0]).all()) for policy in kept]
    assert [row["update"] for row, equal in zip(result.evaluations, same, strict=True) if equal] == [best]
    upto = simengine_training.train(tiny(**changes, total_steps=int(8 * 16 * best)), tmp_path / "upto")
    np.testing.assert_array_equal(result.policy.weights[0], upto.policy.weights[0])


def test_it_stops_at_the_target(tmp_path: Path, tiny: Any) -> None:
    result = simengine_training.train(tiny(target_return=-1e6), tmp_path)
    assert result.finished
    assert result.summary["updates"] == 2


def test_first_update_starts_from_the_policy_that_acted(tmp_path: Path, tiny: Any) -> None:
    """With one minibatch and one epoch every ratio is 1: the density recomputed is that of the rollout."""
    result = simengine_training.train(tiny(epochs=1, minibatches=1), tmp_path / "out")
    for row in result.rows:
        assert row["clip_fraction"] == 0
        assert abs(row["approx_kl"]) < 1e-6
        assert abs(row["policy_loss"]) < 1e-5


@pytest.mark.slow
def test_a_rate_follows_the_divergence(tmp_path: Path, tiny: Any) -> None:
    """A policy that moves too far with a fixed rate keeps near the target."""
    changes = {"learning_rate": 0.03, "anneal": False, "total_steps": 8 * 16 * 24, "eval_episodes": 0}

    def moved(target: float) -> float:
        rows = simengine_training.train(tiny(**changes, target_kl=target), tmp_path / str(target)).rows
        return float(np.mean([row["approx_kl"] for row in rows[12:]]))

    followed, fixed = moved(0.005), moved(0.0)
    assert followed < 0.015 < fixed


def test_first_episodes_that_are_cut_short_do_not_count(tmp_path: Path, tiny: Any) -> None:
    arguments = tiny(spread_starts=True, env_arguments={"backend": "host", "terminate": False}, total_steps=8 * 16 * 8)
    rows = simengine_training.train(arguments, tmp_path / "out").rows
    assert [row["episodes"] for row in rows[:1]] == [0]
    assert sum(row["episodes"] for row in rows) > 8
    for row in rows:
        assert row["length_sum"] == point.STEPS * row["episodes"]


def test_wrong_folders_are_named(tmp_path: Path, tiny: Any, whole: simengine_training.Result) -> None:
    with pytest.raises(TrainingError, match=r"holds no training: there is no summary\.json"):
        simengine_training.resume(tmp_path)
    with pytest.raises(TrainingError, match="already holds a training; resume it"):
        simengine_training.train(tiny(), whole.folder)
    with pytest.raises(TrainingError, match="is finished"):
        simengine_training.resume(whole.folder)
    (tmp_path / "summary.json").write_text('{"arguments": {"env_id": "simengine/Ant-v5"}}')
    with pytest.raises(TrainingError, match="was written by another version of simengine, or is damaged"):
        read_summary(tmp_path)


def test_checkpoints_of_another_training_are_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"a": np.zeros(3)}, 5)
    state, updates = checkpoint.restore(tmp_path, {"a": np.ones(3)})
    assert updates == 5
    np.testing.assert_array_equal(state["a"], np.zeros(3))
    with pytest.raises(TrainingError, match="written by another version of simengine, or for other arguments"):
        checkpoint.restore(tmp_path, {"a": np.ones(4)})
    next((tmp_path / "checkpoints").iterdir()).write_bytes(b"broken")
    with (
        pytest.warns(DamagedCheckpointWarning, match=r"damaged \(it is no whole archive\)"),
        pytest.raises(TrainingError, match="has only damaged checkpoints"),
    ):
        checkpoint.restore(tmp_path, {"a": np.ones(3)})


@pytest.mark.parametrize("room", [0, 3])
def test_a_full_disk_keeps_what_was_saved(
    room: int, whole: simengine_training.Result, tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for some files: for none, so that not even the first checkpoint is written, or for one."""
    save, calls = np.savez, list[int]()

    def full(file: Any, *arrays: Any, **named: Any) -> None:
        calls.append(1)
        if "about" in named and len(calls) > room:
            raise OSError(28, "No space left on device")
        save(file, *arrays, **named)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(TrainingError, match=r"No space left on device\); make room there, then resume"):
            simengine_training.train(tiny(), tmp_path)
    assert [path.suffix for path in (tmp_path / "checkpoints").iterdir()] == [".npz"] * (room > 0)
    assert simengine_training.resume(tmp_path).finished
    assert_same(whole.folder, tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, tiny: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"writing to .*file/out failed \(.*\); name another folder, or make room"):
        simengine_training.train(tiny(), tmp_path / "file" / "out")


def test_reward_that_is_not_finite_is_named(tmp_path: Path, tiny: Any) -> None:
    arguments = tiny(env_arguments={"backend": "host", "broken": True, "terminate": False})
    with pytest.raises(TrainingError, match="update 1 made the loss non-finite; lower learning_rate"):
        simengine_training.train(arguments, tmp_path / "out")


def test_an_evaluation_that_is_not_finite_is_named(tmp_path: Path, tiny: Any) -> None:
    """Whole episodes meet what rollouts of a few steps have not met yet."""
    broken = {"env_arguments": {"backend": "host", "broken": True, "terminate": False}}
    arguments = tiny(**broken, rollout_steps=2, total_steps=64, checkpoint_every=1)
    with pytest.raises(
        TrainingError, match="4 of 4 episodes of the evaluation after update 1 have returns that are not"
    ):
        simengine_training.train(arguments, tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env_id": "simengine/Nothing-v0"}, "environment 'simengine/Nothing-v0' cannot be made: there is no"),
        ({"env_arguments": {"wings": 2}}, "environment .* cannot be made: Point has no argument 'wings'"),
        ({"devices": 4}, "devices is 4, and JAX finds . devices of kind 'cpu' here; lower devices"),
    ],
)
def test_what_cannot_be_made_is_named(changes: dict[str, Any], message: str, tmp_path: Path, tiny: Any) -> None:
    with pytest.raises(TrainingError, match=message):
        simengine_training.train(tiny(**changes), tmp_path / "out")
