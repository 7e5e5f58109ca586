"""Calls of layers on regions, proposals and their targets, each recorded from the real system.

Runs under Python 3.7 as well; see tests/layers/calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls.net import Net

__all__ = ["CALLS"]


def _boxes(n: Net, name: str = "rois", width: int = 4, level: int = 1) -> Any:
    return n.fluid.data(name, [None, width], "float32", lod_level=level)


def _differentiable(n: Net, out: Any, *inputs: Any) -> Any:
    """The output; the program holds the operators of its gradient by the inputs, too."""
    for one in inputs:
        one.stop_gradient = False
    n.fluid.backward.append_backward(n.mean(out))
    return out


def _features(n: Net, channels: int = 8) -> Any:
    return n.x(channels, 16, 16)


def _pool(layer: str, *args: Any, channels: int = 8, **kwargs: Any) -> Callable[[Net], Any]:
    def build(n: Net) -> Any:
        x, rois = _features(n, channels), _boxes(n)
        # The real prroi_pool refuses regions without a gradient.
        wanted = [x, rois] if layer == "prroi_pool" else [x]
        return _differentiable(n, getattr(n, layer)(x, rois, *args, **kwargs), *wanted)

    return build


def _deformable_pool(n: Net, no_trans: bool = False, **kwargs: Any) -> Any:
    x, trans = _features(n), n.x(2, *kwargs.get("part_size", (2, 2)), name="trans")
    out = n.deformable_roi_pooling(x, _boxes(n), trans, no_trans, pooled_height=2, pooled_width=2, **kwargs)
    return _differentiable(n, out, x, trans)


def _deformable_conv(n: Net, modulated: bool = True, mask: bool = True, **kwargs: Any) -> Any:
    x, offset = n.x(4, 8, 8), n.x(18, 8, 8, name="offset")
    weights = n.x(9, 8, 8, name="mask") if mask else None
    out = n.deformable_conv(x, offset, weights, 6, 3, padding=1, modulated=modulated, **kwargs)
    return _differentiable(n, out, x, offset)


_TABLE: dict[str, Callable[[Net], Any]] = {
    "roi_pool": _pool("roi_pool", 7, 7, 0.0625),
    "roi_pool_plain": _pool("roi_pool"),
    "roi_pool_offsets": lambda n: n.roi_pool(
        _features(n), _boxes(n, level=0), 2, 2, rois_lod=n.fluid.data("lod", [None], "int64")
    ),
    "roi_align": _pool("roi_align", 7, 7, 0.0625, 2),
    "roi_align_plain": _pool("roi_align", name="a"),
    "roi_align_refuses_integers": lambda n: n.roi_align(n.ids(8, 4, 4), _boxes(n)),
    "psroi_pool": _pool("psroi_pool", 2, 0.5, 2, 2),
    "psroi_pool_refuses_sizes": lambda n: n.psroi_pool(_features(n), _boxes(n), 2, 1, 2, 2),
    "psroi_pool_refuses_height": lambda n: n.psroi_pool(_features(n), _boxes(n), 2, 1.0, 2.0, 2),
    "prroi_pool": _pool("prroi_pool", 0.5, 3, 3),
    "prroi_pool_counts": lambda n: n.prroi_pool(
        _features(n), _boxes(n, level=0), 0.5, 3, 3, n.fluid.data("counts", [None], "int64"), name="p"
    ),
    "roi_perspective_transform": lambda n: n.roi_perspective_transform(
        _features(n), _boxes(n, width=8), 4, 6
    )[2],
    "roi_perspective_transform_out": lambda n: n.roi_perspective_transform(
        _features(n), _boxes(n, width=8), 4, 6, 0.25
    )[0],
    "deformable_roi_pooling": _deformable_pool,
    "deformable_roi_pooling_still": lambda n: _deformable_pool(n, True, sample_per_part=4, group_size=[2, 2]),
    "deformable_roi_pooling_parts": lambda n: _deformable_pool(n, part_size=(4, 3), trans_std=0.2, name="d"),
    "deformable_conv": _deformable_conv,
    "deformable_conv_plain": lambda n: _deformable_conv(n, modulated=False, mask=False),
    "deformable_conv_groups": lambda n: _deformable_conv(
        n, groups=2, deformable_groups=1, im2col_step=1, bias_attr=False, name="c"
    ),
    "deformable_conv_attr": lambda n: _deformable_conv(n, param_attr=n.attr("w"), bias_attr=n.attr("b")),
    "deformable_conv_refuses_groups": lambda n: _deformable_conv(n, groups=3),
}  # fmt: skip


def _call(build: Callable[[Net], Any]) -> Callable[[Any], Any]:
    return lambda fluid: build(Net(fluid))


CALLS = {name: _call(build) for name, build in _TABLE.items()}
