"""The model of a predictor, and the switches of Paddle's engine, most of which have no effect here."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from paddlelike.left_out import make_attribute_error


class Precision(IntEnum):
    """Precisions of TensorRT; here every model keeps its own precision."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


#: Switches, with the method that reads each, and the value it returns; None means the switch's first
#: argument.
_SETTERS: Final = {
    "disable_glog_info": ("glog_info_disabled", True),
    "disable_gpu": ("use_gpu", False),
    "disable_mkldnn": ("mkldnn_enabled", False),
    "disable_onnxruntime": ("onnxruntime_enabled", False),
    "enable_lite_engine": ("lite_engine_enabled", True),
    "enable_mkldnn": ("mkldnn_enabled", True),
    "enable_mkldnn_int8": ("mkldnn_int8_enabled", True),
    "enable_onnxruntime": ("onnxruntime_enabled", True),
    "enable_tensorrt_engine": ("tensorrt_engine_enabled", True),
    "enable_use_gpu": ("use_gpu", True),
    "enable_xpu": ("use_xpu", True),
    "set_cpu_math_library_num_threads": ("cpu_math_library_num_threads", None),
    "switch_ir_optim": ("ir_optim", None),
    "switch_specify_input_names": ("specify_input_name", None),
    "switch_use_feed_fetch_ops": ("use_feed_fetch_ops_enabled", None),
}
_OTHERS: Final = """
    collect_shape_range_info delete_pass disable_mkldnn_fc_passes enable_custom_device enable_ipu
    enable_low_precision_io enable_memory_optim enable_mkldnn_bfloat16 enable_new_executor
    enable_opencl enable_ort_optimization enable_profile enable_quantizer enable_save_optim_model
    enable_tensorrt_dla enable_tensorrt_inspector enable_tensorrt_memory_optim
    enable_tensorrt_varseqlen enable_tuned_tensorrt_dynamic_shape exp_disable_mixed_precision_ops
    exp_disable_tensorrt_ops exp_enable_mixed_precision_ops exp_enable_use_cutlass set_bfloat16_op
    set_mkldnn_cache_capacity set_mkldnn_op set_optim_cache_dir set_tensorrt_optimization_level
    set_trt_dynamic_shape_info set_xpu_config set_xpu_device_id switch_ir_debug
""".split()  # noqa: SIM905
_ANSWERS: Final[dict[str, Any]] = {
    **{question: fixed is None for question, fixed in _SETTERS.values()},  # before any call
    "specify_input_name": False,
    "cpu_math_library_num_threads": 1,
    "fraction_of_gpu_memory_for_pool": 0.0,
    "gpu_device_id": 0,
    "memory_pool_init_size_mb": 100,
}
#: Switches with an effect.
_MEANT: Final = {
    "disable_onnxruntime",
    "enable_onnxruntime",
    "switch_ir_optim",
    "switch_specify_input_names",
}
#: Switches with an effect only for oneDNN or onnxruntime.
_THREADS: Final = {"set_cpu_math_library_num_threads"}
_ENGINE: Final = {"enable_ort_optimization", *_THREADS}

LOOPS: Final = 600.0  # seconds that the loops of one run may take


class AnalysisConfig:
    """A model: ``AnalysisConfig(directory)``, ``AnalysisConfig(program_file, parameter_file)``.

    Every switch of Paddle's engine (GPU, MKLDNN, TensorRT, passes ...) may be called; :meth:`summary` lists
    the calls that have no effect. After ``enable_onnxruntime()``, onnxruntime (extra ``onnxruntime``) runs
    the operators that it has, on ``set_cpu_math_library_num_threads(n)`` threads. Otherwise operators are
    joined, with results equal up to rounding, and oneDNN (extra ``fast``) computes convolutions and products
    on as many threads. ``switch_ir_optim(False)`` runs operators one by one, with the bits of
    ``Executor.run``.

    >>> config = AnalysisConfig("model/__model__", "model/__params__")
    >>> config.enable_mkldnn()
    >>> config.mkldnn_enabled()
    True
    >>> print(config.summary())
    program file     model/__model__
    parameter file   model/__params__
    without effect   enable_mkldnn()
    """

    Precision = Precision

    def __init__(
        self, model: str | os.PathLike[str] | AnalysisConfig = "", params_file: str | os.PathLike[str] = ""
    ) -> None:
        self._model_dir = self._prog_file = self._params_file = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._loop_limit: tuple[float | None, int | None] = (LOOPS, None)
        self._answers = dict(_ANSWERS)
        self._called: list[tuple[str, str]] = []
        self._reports: dict[str, str] = {}  # a predictor's report on the model, by title
        if isinstance(model, AnalysisConfig):
            vars(self).update(copy.deepcopy(vars(model)))
        elif model:
            self.set_model(model, params_file)

    def set_model(self, model: str | os.PathLike[str], params_file: str | os.PathLike[str] = "") -> None:
        """Set the directory of the model, or its two files."""
        path = os.fspath(model)
        if params_file:
            self._model_dir, self._prog_file, self._params_file = "", path, os.fspath(params_file)
        else:
            self._model_dir, self._prog_file, self._params_file = path, "", ""

    def set_prog_file(self, path: str | os.PathLike[str]) -> None:
        """Set the file of the program."""
        self._prog_file = os.fspath(path)

    def set_params_file(self, path: str | os.PathLike[str]) -> None:
        """Set the file of the parameters."""
        self._params_file = os.fspath(path)

    def set_model_buffer(self, program: bytes, program_size: int, params: bytes, params_size: int) -> None:
        """Set the bytes of the program and of the parameters (all parameters in one file)."""
        self._buffers = bytes(program[:program_size]), bytes(params[:params_size])

    def model_dir(self) -> str:
        """Return the directory of the model."""
        return self._model_dir

    def prog_file(self) -> str:
        """Return the file of the program."""
        return self._prog_file

    def params_file(self) -> str:
        """Return the file of the parameters."""
        return self._params_file

    def model_from_memory(self) -> bool:
        """Return whether :meth:`set_model_buffer` was called."""
        return self._buffers is not None

    def model_buffers(self) -> tuple[bytes, bytes] | None:
        """Return the arguments of :meth:`set_model_buffer`, or None if it was not called. Not in Paddle."""
        return self._buffers

    def set_loop_limit(self, seconds: float | None = LOOPS, steps: int | None = None) -> None:
        """Limit the seconds of all ``while`` loops of one run together, and the steps of each loop. Not in
        Paddle.

        A longer loop is an error, since a loop of a model from a file may never end. The default is 600
        seconds and any number of steps; None means no limit. It does not apply to onnxruntime.
        """
        self._loop_limit = seconds, steps

    def loop_limit(self) -> tuple[float | None, int | None]:
        """Return the limits of loops: seconds and steps. Not in Paddle."""
        return self._loop_limit

    def summary(self) -> str:
        """Describe the location of the model, its engine, and the switches without effect here.

        After a predictor was created, it also describes how the model runs.
        """
        meant = _THREADS if self._reports.get("kernels", "").startswith("oneDNN") else set()
        meant = _ENGINE if self._answers["onnxruntime_enabled"] else meant
        rows = [
            ("model", self._model_dir),
            ("program file", self._prog_file),
            ("parameter file", self._params_file),
            ("model", "from memory" if self._buffers else ""),
            *self._reports.items(),
            ("without effect", ", ".join(call for name, call in self._called if name not in meant)),
        ]
        return "\n".join(f"{name:<16} {value}" for name, value in rows if value)

    def _report(self, title: str, text: str) -> None:
        """Record how a predictor runs the model, for the text of :meth:`summary`."""
        self._reports[title] = text

    def to_native_config(self) -> NativeConfig:
        """Return the configuration for the engine without passes."""
        config = NativeConfig()
        config.model_dir, config.prog_file = self._model_dir, self._prog_file
        config.param_file = self._params_file
        return config

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in _SETTERS or name in _OTHERS:
            return lambda *args, **kwargs: self._switch(name, args, kwargs)
        if name in _ANSWERS:
            return lambda: self._answers[name]
        raise make_attribute_error("AnalysisConfig", name, [*dir(type(self)), *_SETTERS, *_OTHERS, *_ANSWERS])

    def _switch(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        if name not in _MEANT:
            self._called.append((name, f"{name}({', '.join(given)})"))
        if name in _SETTERS:
            question, fixed = _SETTERS[name]
            value = next(iter([*args, *kwargs.values()]), True) if fixed is None else fixed
            self._answers[question] = type(_ANSWERS[question])(value)


class NativeConfig:
    """The older form of :class:`AnalysisConfig`: attributes instead of methods."""

    def __init__(self) -> None:
        self.model_dir = self.prog_file = self.param_file = ""
        self.use_gpu = False
        self.device = 0
        self.fraction_of_gpu_memory = -1.0
        self.specify_input_name = False
        self._threads = 1

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """Set the number of threads, which has no effect here."""
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """Return the number set before."""
        return self._threads

    def to_analysis_config(self) -> AnalysisConfig:
        """Return the same model as :class:`AnalysisConfig`. Not in Paddle."""
        config = AnalysisConfig()
        config.set_model(self.model_dir or self.prog_file, self.param_file)
        config.switch_specify_input_names(self.specify_input_name)
        return config
