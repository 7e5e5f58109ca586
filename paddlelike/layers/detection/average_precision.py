"""Mean average precision of detections, of a batch and of all batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike import unique_name
from paddlelike.errors import GraphError
from paddlelike.framework import Program, Variable, program_guard, warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.concat import concat
from paddlelike.layers.tensor.constant import fill_constant

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.executor.run import Executor


def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """Return the mean average precision (1,) of detections.

    ``detect_res`` (M, 6) has rows (label, score, box); ``label`` has rows (label, box), (N, 5), or (label,
    difficult, box), (N, 6). Both have one sequence of rows per image; boxes are shares of the image.
    ``input_states`` and ``out_states`` are each a count of true boxes, rows of right detections and rows of
    wrong detections. ``input_states``, of earlier batches, are read where ``has_state`` (1,) int32 is not 0.
    As in Fluid, ``background_label`` has no effect. Operator ``detection_map``.
    """
    check_variable("detection_map", "detect_res", detect_res)
    check_variable("detection_map", "label", label)
    attrs = {"background_label": background_label}
    if background_label == 0 or warn_quirk("detection_map_background"):
        attrs = {}
    helper = LayerHelper("detection_map")
    out = helper.create_variable_for_type_inference("float32")
    if out_states is None:
        dtypes = ("int32", "float32", "float32")
        out_states = [helper.create_variable_for_type_inference(dtype) for dtype in dtypes]
    inputs = {"Label": label, "DetectRes": detect_res}
    if has_state is not None:
        inputs["HasState"] = has_state
    if input_states is not None:
        inputs |= zip(("PosCount", "TruePos", "FalsePos"), input_states, strict=True)
    helper.append_op(
        type="detection_map",
        inputs=inputs,
        outputs={
            "MAP": out,
            **dict(zip(("AccumPosCount", "AccumTruePos", "AccumFalsePos"), out_states, strict=True)),
        },
        attrs={
            **attrs,
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_type": ap_version,
            "class_num": class_num,
        },
    )
    return out


class DetectionMAP:
    """The mean average precision of detections, of the current batch and of all batches since the reset.

    ``input`` has rows like the result of :func:`~paddlelike.layers.detection_output`; boxes are shares of the
    image. A detection is right when it overlaps a true box of its class by more than ``overlap_threshold``,
    and no detection with a better score does.

    Parameters
    ----------
    input
        Rows (label, score, box), (M, 6), one sequence per image.
    gt_label
        The true classes, (N, 1), one sequence per image.
    gt_box
        The true boxes, (N, 4), one sequence per image.
    gt_difficult
        1 for boxes that are difficult, (N, 1); None for none.
    class_num
        The number of classes, background included.
    background_label
        Ignored, as in Fluid.
    overlap_threshold
        The overlap, from 0 to 1, above which a detection is right.
    evaluate_difficult
        Whether difficult boxes count.
    ap_version
        ``"integral"`` or ``"11point"``.

    Raises
    ------
    GraphError
        ``class_num`` is missing.

    >>> from paddlelike.input import data
    >>> rows, label = data("rows", [None, 6], lod_level=1), data("label", [None, 1], lod_level=1)
    >>> metric = DetectionMAP(rows, label, data("box", [None, 4], lod_level=1), class_num=3)
    >>> [one.shape for one in metric.get_map_var()]
    [(1,), (1,)]
    """

    def __init__(
        self,
        input: Variable,
        gt_label: Variable,
        gt_box: Variable,
        gt_difficult: Variable | None = None,
        class_num: int | None = None,
        background_label: int = 0,
        overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        self.helper = self._create_helper()
        if class_num is None:
            raise GraphError("DetectionMAP: class_num is None", hint="pass the number of classes")
        parts = [cast(gt_label, gt_box.dtype)]
        if gt_difficult is not None:
            parts.append(cast(gt_difficult, gt_box.dtype))
        label = concat([*parts, gt_box], axis=1)
        options = (class_num, background_label, overlap_threshold, evaluate_difficult)
        self.cur_map = detection_map(input, label, *options, None, None, None, ap_version)
        kinds = {"accum_pos_count": "int32", "accum_true_pos": "float32", "accum_false_pos": "float32"}
        states = [self._create_state(suffix, dtype, []) for suffix, dtype in kinds.items()]
        flag = self._create_flag()
        self.helper.set_variable_initializer(flag, Constant(0))
        self.has_state = flag
        self.accum_map = detection_map(input, label, *options, flag, states, states, ap_version)
        fill_constant([1], "int32", 1, out=flag)

    def get_map_var(self) -> tuple[Variable, Variable]:
        """Return the mean average precision of the current batch and of all batches, each (1,)."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Forget earlier batches, by an operator appended to ``reset_program`` (None means a new one)."""
        program = Program() if reset_program is None else reset_program
        state = self.has_state
        with program_guard(program):
            twin = program.global_block().create_var(
                name=state.name, shape=state.shape, dtype=state.dtype, type=state.type,
                lod_level=state.lod_level, persistable=True,
            )  # fmt: skip
            fill_constant(list(state.shape), state.dtype, 0, out=twin)
        executor.run(program)

    def _create_helper(self) -> LayerHelper:
        return LayerHelper("map_eval")

    def _create_state(self, suffix: str, dtype: DtypeLike, shape: Sequence[int]) -> Variable:
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        return self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)

    def _create_flag(self) -> Variable:
        """Return the variable that is true when earlier batches exist."""
        return self._create_state("has_state", "int32", [1])
