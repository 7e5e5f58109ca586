"""The names of ``fluid.interop``, and where each is defined."""

from paddlelike.interop.cntk import (
    CntkCheckpoint,
    CntkReport,
    export_cntk,
    export_cntk_checkpoint,
    import_cntk,
    import_cntk_checkpoint,
)
from paddlelike.interop.convert import ConvertReport, convert
from paddlelike.interop.hdf5 import ParamSetter, build_param_setters, load_hdf5, save_hdf5
from paddlelike.interop.onnx import OnnxReport, export_onnx, import_onnx

__all__ = [
    "CntkCheckpoint",
    "CntkReport",
    "ConvertReport",
    "OnnxReport",
    "ParamSetter",
    "build_param_setters",
    "convert",
    "export_cntk",
    "export_cntk_checkpoint",
    "export_onnx",
    "import_cntk",
    "import_cntk_checkpoint",
    "import_onnx",
    "load_hdf5",
    "save_hdf5",
]
