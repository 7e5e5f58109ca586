"""Transposes of images that are put off, and what is computed between them, change no value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
jnp = jax.numpy


def _last(x: Any) -> Any:
    return jnp.moveaxis(x, 1, -1)


def _first(x: Any) -> Any:
    return jnp.moveaxis(x, -1, 1)


def _count_transposes(function: Callable[..., Any], *args: Any) -> int:
    return str(jax.make_jaxpr(function)(*args)).count(" transpose[")


#: What is computed between two transposes, of images of shape (N, C, H, W) and a number per channel.
BETWEEN: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda x, c: 2 * jnp.maximum(x, 0) - 1,
    "a number per channel": lambda x, c: x * c[:, None, None] + c.reshape(1, -1, 1, 1),
    "another image": lambda x, c: jnp.where(x > 0, x, _first(_last(x) ** 2)),
    "channels": lambda x, c: jnp.concatenate([x, x + 1], 1),
    "rows": lambda x, c: jnp.concatenate([x, x + 1], 2),
    "borders": lambda x, c: jnp.pad(x, ((0, 0), (0, 0), (1, 2), (3, 0)), constant_values=7),
    "every other row": lambda x, c: x[:, 1:, ::2, 1:-1],
    "centered": lambda x, c: x - x.mean((0, 2, 3), keepdims=True) + x.max((1, 3), keepdims=True),
    "windows": lambda x, c: jax.lax.reduce_window(
        x, -np.inf, jax.lax.max, (1, 1, 2, 3), (1, 1, 2, 1), "VALID"
    ),
    "functions": lambda x, c: jax.nn.relu(jax.jit(lambda y: y + 1)(x)),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_delayed_transposes_change_no_value(name: str) -> None:
    from paddlelike.compiled.tracing.orders import delay_transposes

    draw = np.random.default_rng(3)
    x, c = draw.normal(size=(2, 4, 5, 3)), draw.normal(size=3)

    def compute(x: Any, c: Any) -> Any:
        return _last(BETWEEN[name](_first(x), c)), c.sum()

    results = [jax.jit(function)(x, c) for function in (delay_transposes(compute), compute)]
    for got, expected in zip(*results, strict=True):
        # Sums over another order of dims are rounded otherwise.
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    gradient = jax.grad(lambda x, c: jnp.sin(compute(x, c)[0]).sum())
    moved = jax.jit(delay_transposes(gradient))(x, c)
    np.testing.assert_allclose(moved, jax.jit(gradient)(x, c), rtol=1e-5, atol=1e-5)


def test_transposes_of_images_cancel_and_others_stay() -> None:
    from paddlelike.compiled.tracing.orders import delay_transposes

    x = np.ones((2, 4, 5, 3))

    def image(x: Any) -> Any:
        return _last(jnp.tanh(_first(x)) + 1)

    def heads(x: Any) -> Any:
        return jnp.tanh(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)

    assert (_count_transposes(image, x), _count_transposes(delay_transposes(image), x)) == (2, 0)
    assert _count_transposes(delay_transposes(heads), x) == 2
    # Only one of the two uses wants the channels second.
    both = delay_transposes(lambda x: (_first(x) + 1, image(x)))
    assert _count_transposes(both, x) == 1


@pytest.mark.parametrize(("size", "step", "pad"), [(3, 2, 1), (2, 2, 0), (3, 1, 1), (2, 3, 0), (6, 1, 0)])
def test_gradient_of_equal_maxima_goes_to_the_first(size: int, step: int, pad: int) -> None:
    values = np.random.default_rng(0).integers(0, 3, (2, 3, 9, 8)).astype("float32")
    found = []
    for backend in ("numpy", "jax"):
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
            x = fluid.data("x", [2, 3, 9, 8], "float32")
            x.stop_gradient = False
            out = fluid.layers.pool2d(x, size, "max", step, pad, ceil_mode=True)
            (gradient,) = fluid.gradients(fluid.layers.reduce_sum(out * out), x)
        compiled = fluid.CompiledProgram(program).with_backend(backend)
        found.append(fluid.Executor().run(compiled, {"x": values}, [out, gradient]))
    for ours, reference in zip(found[1], found[0], strict=True):
        np.testing.assert_array_equal(ours, reference)
