"""The names of ``fluid.interop``, and where each is defined."""

from paddlelike.interop.cntk import (
    CntkCheckpoint as CntkCheckpoint,
    CntkReport as CntkReport,
    export_cntk as export_cntk,
    export_cntk_checkpoint as export_cntk_checkpoint,
    import_cntk as import_cntk,
    import_cntk_checkpoint as import_cntk_checkpoint,
)
from paddlelike.interop.convert import ConvertReport as ConvertReport, convert as convert
from paddlelike.interop.hdf5 import (
    ParamSetter as ParamSetter,
    build_param_setters as build_param_setters,
    load_hdf5 as load_hdf5,
    save_hdf5 as save_hdf5,
)
from paddlelike.interop.onnx import (
    OnnxReport as OnnxReport,
    export_onnx as export_onnx,
    import_onnx as import_onnx,
)
