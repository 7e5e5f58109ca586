"""Every layer of the zoo runs compiled, forward and backward, with the values of numpy's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.core import Scope, numpy_dtype
from paddlelike.errors import PaddlelikeError
from tests.helpers.fresh import fresh_programs
from tests.zoo.layers import LAYERS

pytestmark = pytest.mark.slow

#: Sizes of dims that a layer leaves open; the sequences of a batch.
ROWS, LENGTHS = 6, [1, 3, 2]


def make_feed(main: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Return values for all data: numbers in (0.1, 0.9), and the integers 0 and 1."""
    feed = {}
    for var in main.global_block().vars.values():
        if not var.is_data:
            continue
        shape = [ROWS if dim < 0 else dim for dim in var.shape]
        dtype = numpy_dtype(var.dtype)
        array = rng.uniform(0.1, 0.9, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        feed[var.name] = array.astype(dtype)
        if var.lod_level == 1:
            feed[var.name] = fluid.create_lod_tensor(feed[var.name], [LENGTHS], fluid.CPUPlace())
        elif var.lod_level:
            return {}
    return feed


def compare(name: str, place: Any = None) -> dict[str, str] | None:
    """Return what numpy ran of a layer and why; None where numpy itself cannot run it on such a feed.

    ``place``: where it is compiled for, the CPU if that is None.
    """
    with fresh_programs() as (main, startup):
        main.random_seed = startup.random_seed = 3
        try:
            out = LAYERS[name]()
            fetch = [v for v in (out if isinstance(out, list | tuple) else [out]) if hasattr(v, "name")]
            if fetch and fetch[0].dtype.name == "FP32" and not fetch[0].stop_gradient:
                pairs = fluid.backward.append_backward(fluid.layers.mean(fetch[0]))
                fetch += [gradient for _, gradient in pairs]
            feed = make_feed(main, np.random.default_rng(5))
            results = []
            for backend in ("numpy", "jax"):
                exe = fluid.Executor(place if backend == "jax" else None)
                scope = Scope()
                scope.generator.state = 11
                if startup.global_block().ops:
                    exe.run(startup, scope=scope)
                program = fluid.CompiledProgram(main).with_backend(backend)
                scope.generator.state = 12
                results.append(exe.run(program, feed=feed, fetch_list=fetch, scope=scope, return_numpy=False))
        except (PaddlelikeError, ValueError, TypeError, RuntimeError, AttributeError):
            return None
        for one, other in zip(*results, strict=True):
            if isinstance(one, fluid.core.LoDTensor):
                assert one.recursive_sequence_lengths() == other.recursive_sequence_lengths(), name
                # Another order of float32 sums, carried through a layer and its gradient.
                np.testing.assert_allclose(np.array(one), np.array(other), 1e-4, 1e-5, err_msg=name)
        engine = next(v for key, v in main.plans.items() if key[0] == "engine")
        return {engine.plan.steps[i].op.type: why for i, why in engine.refused.items()}


def test_compiled_layers_of_the_zoo_give_the_same_results(
    record_property: Callable[[str, object], None],
) -> None:
    found = {name: refused for name in LAYERS if (refused := compare(name)) is not None}
    whole = [name for name, refused in found.items() if not refused]
    text = f"jax: {len(whole)} of {len(found)} layers wholly compiled, the others in part, all equal to numpy"
    record_property("summary", text)
    assert len(found) > 230
    assert len(whole) > 200
