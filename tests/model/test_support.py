"""Models with unsupported features are refused at load. One error names every feature and element."""

from __future__ import annotations

import mujoco
import pytest

from simengine import ModelError, UnsupportedModelError, load_model
from simengine.model.support import HONOURED_DISABLE_FLAGS, HONOURED_ENABLE_FLAGS, unsupported_features
from tests.model.features import FEATURES, TOGETHER, model_with
from tests.models import ALL, compile_model


def test_the_model_without_features_is_supported() -> None:
    assert load_model(model_with()).name == "odd"


@pytest.mark.parametrize("name", FEATURES)
def test_each_feature_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        load_model(model_with(name))
    message = str(refusal.value)
    assert FEATURES[name].words in message
    assert message.startswith("model 'odd' needs ")
    assert message.endswith("remove them from the model or use MuJoCo itself for it")
    assert "\n" not in message
    assert any(FEATURES[name].words in line for line in refusal.value.features)


def test_all_features_are_named_at_once() -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        load_model(model_with(*TOGETHER))
    missing = [name for name in TOGETHER if FEATURES[name].words not in str(refusal.value)]
    assert missing == []
    assert len(refusal.value.features) >= len(TOGETHER)
    assert f"needs {len(refusal.value.features)} feature(s)" in str(refusal.value)


def test_the_refusal_is_a_model_error_and_a_value_error() -> None:
    with pytest.raises(ModelError):
        load_model(model_with("sleep"))
    with pytest.raises(ValueError, match="enable flag sleep"):
        load_model(model_with("sleep"))


@pytest.mark.parametrize("name", ALL)
def test_supported_models_have_no_unsupported_features(name: str) -> None:
    assert unsupported_features(compile_model(name)) == []


def test_every_flag_is_honoured_or_refused() -> None:
    """Each bit alone: one line for a refused flag, none for an honoured one."""
    mj = mujoco.MjModel.from_xml_string(model_with())
    for name, flag in mujoco.mjtDisableBit.__members__.items():
        if name.startswith("mjDSBL_"):
            mj.opt.disableflags = int(flag)
            expected = [] if int(flag) in HONOURED_DISABLE_FLAGS else [f"disable flag {name[7:].lower()}"]
            assert unsupported_features(mj) == expected
    mj.opt.disableflags = 0
    for name, flag in mujoco.mjtEnableBit.__members__.items():
        if name.startswith("mjENBL_"):
            mj.opt.enableflags = int(flag)
            expected = [] if int(flag) in HONOURED_ENABLE_FLAGS else [f"enable flag {name[7:].lower()}"]
            assert unsupported_features(mj) == expected


def test_geoms_that_can_touch_nothing_are_of_any_type() -> None:
    text = model_with().replace(
        "</worldbody>",
        '<body><freejoint/><geom type="box" size="1 1 1" contype="0" conaffinity="0"/></body></worldbody>',
    )
    assert load_model(text).ngeom == 3
