"""``fluid.layers.control_flow``: loops, branches, arrays, repeated networks."""

from __future__ import annotations

from paddlelike.layers.control.branches import Switch, case, cond, switch_case
from paddlelike.layers.control.debugging import Print
from paddlelike.layers.control.if_else import IfElse, merge_lod_tensor, split_lod_tensor
from paddlelike.layers.control.loops import While, while_loop
from paddlelike.layers.control.sub_blocks import ConditionalBlock
from paddlelike.layers.control.tensor_array import (
    array_length,
    array_read,
    array_to_lod_tensor,
    array_write,
    create_array,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    reorder_lod_tensor_by_rank,
    shrink_memory,
)
from paddlelike.layers.elementwise.arithmetic import increment
from paddlelike.layers.elementwise.comparison import (
    equal,
    greater_equal,
    greater_than,
    is_empty,
    less_equal,
    less_than,
    not_equal,
)
from paddlelike.layers.recurrent.dynamic_rnn import DynamicRNN
from paddlelike.layers.recurrent.static_rnn import StaticRNN

__all__ = [
    "ConditionalBlock",
    "DynamicRNN",
    "IfElse",
    "Print",
    "StaticRNN",
    "Switch",
    "While",
    "array_length",
    "array_read",
    "array_to_lod_tensor",
    "array_write",
    "case",
    "cond",
    "create_array",
    "equal",
    "greater_equal",
    "greater_than",
    "increment",
    "is_empty",
    "less_equal",
    "less_than",
    "lod_rank_table",
    "lod_tensor_to_array",
    "max_sequence_len",
    "merge_lod_tensor",
    "not_equal",
    "reorder_lod_tensor_by_rank",
    "shrink_memory",
    "split_lod_tensor",
    "switch_case",
    "while_loop",
]
