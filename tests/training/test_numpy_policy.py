"""The policy in NumPy: what it computes, and its file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simengine_training import numpy_policy
from simengine_training.numpy_policy import NumpyPolicy

SIZES = (5, 7, 6, 3)


def _policy(activation: str = "tanh") -> NumpyPolicy:
    draw = np.random.default_rng(0)
    pairs = list(pairwise(SIZES))
    return NumpyPolicy(
        environment="simengine/Hopper-v5",
        mean=draw.normal(size=5),
        deviation=draw.uniform(0.5, 2, size=5),
        limit=10.0,
        activation=activation,
        weights=tuple(draw.normal(size=pair, scale=0.3).astype(np.float32) for pair in pairs),
        biases=tuple(draw.normal(size=outputs, scale=0.1).astype(np.float32) for _, outputs in pairs),
        low=np.array([-1.0, -2.0, 0.0]),
        high=np.array([1.0, 2.0, 4.0]),
    )


def test_a_saved_policy_takes_the_same_actions(tmp_path: Path) -> None:
    policy = _policy()
    policy.save(tmp_path / "policy.npz")
    observations = np.random.default_rng(1).normal(size=(4, 5)) * 3
    actions = policy(observations)
    for name in (tmp_path, tmp_path / "policy.npz"):
        np.testing.assert_array_equal(NumpyPolicy.load(name)(observations), actions)
    np.testing.assert_allclose(policy(observations[2]), actions[2], rtol=1e-5, atol=1e-6)
    assert (actions >= policy.low).all()
    assert (actions <= policy.high).all()
    assert len(np.unique(actions[:, 2])) > 1


def test_the_file_runs_with_numpy_alone(tmp_path: Path) -> None:
    policy = _policy("elu")
    policy.save(tmp_path / "policy.npz")
    shutil.copy(numpy_policy.__file__, tmp_path / "policy.py")
    program = (
        "import sys, numpy as np; from policy import NumpyPolicy; "
        "print(NumpyPolicy.load('policy.npz')(np.ones(5)).tolist()); "
        "assert not {'jax', 'simengine', 'simengine_training'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(eval(found.stdout), policy(np.ones(5)), rtol=1e-6)


def test_what_is_not_a_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.npz").write_text("no archive")
    np.savez(tmp_path / "arrays.npz", qpos=np.zeros(3))
    for name in ("notes.npz", "arrays.npz"):
        with pytest.raises(ValueError, match=r"is not a policy; give a policy\.npz"):
            NumpyPolicy.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        NumpyPolicy.load(tmp_path)
    _policy().save(tmp_path / "policy.npz")
    changed = dict(np.load(tmp_path / "policy.npz")) | {"format": 9}
    np.savez(tmp_path / "policy.npz", **changed)
    with pytest.raises(ValueError, match="format 9, not 1"):
        NumpyPolicy.load(tmp_path)
    with pytest.raises(ValueError, match="observations of 5 entries, not of shape"):
        _policy()(np.ones(4))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("activation", np.array("__import__"), "it has the unknown activation '__import__'"),
        ("format", np.array([1, 1]), r"has format \[1 1\], not 1"),
        ("mean", np.full(5, np.nan), "its mean has entries that are no finite numbers"),
        ("deviation", np.ones(1), r"its deviation has shape \(1,\), where \(5,\) fits the others"),
        ("limit", np.array("5"), "its limit has entries that are no finite numbers"),
        ("weights_1", np.zeros((6, 7)), r"its weights_1 has shape \(6, 7\), where \(7, 6\) fits the others"),
        ("biases_2", np.zeros(3, complex), "its biases_2 has entries that are no finite numbers"),
        ("high", np.array([[1.0, 2.0, 4.0]]), r"its high has shape \(1, 3\), where \(3,\) fits the others"),
    ],
)
def test_a_file_whose_arrays_make_no_policy_is_refused(name: str, value: np.ndarray, said: str, tmp_path: Path) -> None:
    _policy().save(tmp_path / "policy.npz")
    np.savez(tmp_path / "policy.npz", **{**dict(np.load(tmp_path / "policy.npz")), name: value})
    with pytest.raises(ValueError, match=said):
        NumpyPolicy.load(tmp_path)
