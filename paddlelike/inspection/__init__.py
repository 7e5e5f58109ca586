"""Inspect saved files of any known format: their contents, their problems, and differences of two files."""

from paddlelike.inspection.diagnosis import Diagnosis, Finding, diagnose
from paddlelike.inspection.difference import Change, Difference, compare
from paddlelike.inspection.drawing import Drawing, draw
from paddlelike.inspection.inspect import FileFacts, Inspection, VariableFacts, inspect
from paddlelike.inspection.layers import Layer, LayerTable, list_layers
from paddlelike.inspection.statistics import Histogram, Statistics, count_bins, summarize

__all__ = [
    "Change",
    "Diagnosis",
    "Difference",
    "Drawing",
    "FileFacts",
    "Finding",
    "Histogram",
    "Inspection",
    "Layer",
    "LayerTable",
    "Statistics",
    "VariableFacts",
    "compare",
    "count_bins",
    "diagnose",
    "draw",
    "inspect",
    "list_layers",
    "summarize",
]
