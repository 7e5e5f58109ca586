"""Clips and regularizers: what they say, refuse and warn of (their programs: tests/optimizer)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.optimizer.harness.cases import dense, feeds

clip = fluid.clip
regularizer = fluid.regularizer


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (clip.GradientClipByValue(2, -1), "Gradient Clip By Value, min = -1.000000, max=2.000000"),
        (clip.GradientClipByNorm(2), "Gradient Clip By Norm, clip_norm=2.000000"),
        (clip.GradientClipByGlobalNorm(2), "Gradient Clip By GlobalNorm, global_norm=2.000000"),
        (clip.ErrorClipByValue(2, 0.5), "ByValue, min=0.500000, max=2.000000"),
        (regularizer.L2Decay(0.1), "L2Decay, regularization_coeff=0.100000"),
        (regularizer.L1Decay(1), "L1Decay, regularization_coeff=1.000000"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value.__class__.__name__,
)
def test_clips_print_as_in_fluid(one: Any, text: str) -> None:
    assert str(one) == text


def gradients(tool: Any, loss: Any) -> list[Any]:
    """The gradients that the updates get, and the plain ones, of the first batch."""
    updates, pairs = tool.minimize(loss)
    used = {op.input("Param")[0]: op.input("Grad")[0] for op in updates if op.type == "sgd"}
    names = [used[p.name] for p, _ in pairs] + [g.name for _, g in pairs]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    batch = {name: feeds()[0][name] for name in ("x", "y")}
    return exe.run(feed=batch, fetch_list=names)


def test_the_global_norm_covers_all_gradients() -> None:
    found = gradients(fluid.optimizer.SGD(0.0, grad_clip=clip.GradientClipByGlobalNorm(0.5)), dense(fluid))
    clipped, plain = found[:3], found[3:]
    norm = np.sqrt(sum(np.sum(g.astype(float) ** 2) for g in plain))
    assert norm > 0.5
    for got, grad in zip(clipped, plain, strict=True):
        np.testing.assert_allclose(got, grad * 0.5 / norm, rtol=1e-5)


def test_a_norm_below_the_limit_changes_nothing() -> None:
    found = gradients(fluid.optimizer.SGD(0.0, grad_clip=clip.GradientClipByGlobalNorm(1e3)), dense(fluid))
    for got, grad in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(got, grad, rtol=1e-6)


def test_invalid_clip_limits_are_refused() -> None:
    with pytest.raises(GraphError, match="max is -1"):
        clip.GradientClipByValue(-1)
    with pytest.raises(TypeError, match="need_clip must be a function"):
        clip.GradientClipByNorm(1, need_clip=3)  # type: ignore[arg-type]


def test_an_error_clip_of_another_kind_is_refused() -> None:
    loss = dense(fluid)
    fluid.default_main_program().global_block().var("fc_0.tmp_1")._set_error_clip(3)
    with pytest.raises(TypeError, match=r"'fc_0.tmp_1': its error clip must be an ErrorClipByValue, got 3"):
        fluid.optimizer.SGD(0.1).minimize(loss)


def test_a_test_program_has_no_error_clip() -> None:
    loss = dense(fluid)
    fluid.default_main_program().global_block().var("fc_0.tmp_1")._set_error_clip(clip.ErrorClipByValue(0.1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    test = fluid.default_main_program().clone(for_test=True)
    assert "clip" not in [op.type for op in test.global_block().ops]


class TestSetGradientClip:
    """The older way says that it is one, and where it does not do what it seems to."""

    def test_set_gradient_clip_warns_that_it_is_deprecated(self) -> None:
        with pytest.warns(UserWarning, match="older way"):
            clip.set_gradient_clip(clip.GradientClipByValue(1.0))

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_a_clip_set_after_minimize_warns_that_it_has_no_effect(self) -> None:
        fluid.optimizer.SGD(0.1).minimize(dense(fluid))
        with pytest.warns(UserWarning, match="after minimize"):
            clip.set_gradient_clip(clip.GradientClipByValue(1.0))

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_one_parameter_without_a_clip_disables_clipping(self) -> None:
        loss = dense(fluid)
        clip.set_gradient_clip(clip.GradientClipByValue(1.0), param_list=["fc_0.w_0"])
        with pytest.warns(UserWarning, match=r"nothing is clipped if a parameter has none"):
            fluid.optimizer.SGD(0.1).minimize(loss)

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_the_last_set_gradient_clip_applies_to_all(self) -> None:
        loss = dense(fluid)
        clip.set_gradient_clip(clip.GradientClipByValue(1.0))
        clip.set_gradient_clip(clip.GradientClipByValue(2.0), param_list=["fc_1.w_0"])
        with pytest.warns(UserWarning, match=r"the clip of the last parameter is used for all"):
            fluid.optimizer.SGD(0.1).minimize(loss)

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_the_clip_of_the_optimizer_has_precedence(self) -> None:
        loss = dense(fluid)
        clip.set_gradient_clip(clip.GradientClipByValue(1.0))
        with pytest.warns(UserWarning, match="the optimizer has a grad_clip"):
            fluid.optimizer.SGD(0.1, grad_clip=clip.GradientClipByNorm(1.0)).minimize(loss)

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_one_clip_group_has_one_norm(self) -> None:
        loss = dense(fluid)
        clip.set_gradient_clip(clip.GradientClipByGlobalNorm(1.0))
        clip.set_gradient_clip(clip.GradientClipByGlobalNorm(2.0), param_list=["fc_1.w_0"])
        with pytest.raises(GraphError, match="expected one clip_norm per group"):
            fluid.optimizer.SGD(0.1).minimize(loss)

    @pytest.mark.filterwarnings("ignore:set_gradient_clip is the older way")
    def test_other_kinds_of_clips_are_refused(self) -> None:
        dense(fluid)
        with pytest.raises(TypeError, match=r"gradient clip of fluid\.clip"):
            clip.set_gradient_clip(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="parameters or their names"):
            clip.set_gradient_clip(clip.GradientClipByValue(1.0), param_list=[3])
        with pytest.raises(GraphError, match=r"did you mean 'fc_0\.w_0'"):
            clip.set_gradient_clip(clip.GradientClipByValue(1.0), param_list=["fc_0.w0"])


def test_a_regularizer_may_be_subclassed() -> None:
    class Cubic(regularizer.L2DecayRegularizer):  # type: ignore[misc]
        """Adds ``coeff * parameter ** 3``."""

        def __call__(self, param: Any, grad: Any, block: Any) -> Any:
            return self._regularization_coeff * param * param * param

    loss = dense(fluid)
    updates, _ = fluid.optimizer.SGD(0.1, regularization=Cubic(0.1)).minimize(loss)
    assert len(updates) == 3
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={name: feeds()[0][name] for name in ("x", "y")}, fetch_list=[loss])
