"""nms: drop the boxes that overlap a better one."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Float
from paddlelike.ops.later import register_kernel


@register_kernel("nms", "Boxes -> KeepBoxesIdxs", {"iou_threshold": Float(1.0)})
def _nms(boxes: Array, *, iou_threshold: float) -> Array:
    """The boxes (x1, y1, x2, y2), best first, that do not overlap a better one by more than the threshold."""
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    for index, box in enumerate(boxes):
        low = np.maximum(box[:2], boxes[kept, :2])
        high = np.minimum(box[2:], boxes[kept, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        if not (common > iou_threshold * (areas[index] + areas[kept] - common)).any():
            kept.append(index)
    return np.array(kept, np.int64)
