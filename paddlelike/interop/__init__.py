"""Conversion between file formats, and the HDF5 recipe of TensorFlow users."""

from paddlelike.interop.convert import ConvertReport, convert
from paddlelike.interop.hdf5 import ParamSetter, build_param_setters, load_hdf5, save_hdf5

__all__ = ["ConvertReport", "ParamSetter", "build_param_setters", "convert", "load_hdf5", "save_hdf5"]
