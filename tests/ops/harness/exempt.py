"""Operators that the contract cannot check, and the tests that check them instead."""

from __future__ import annotations

from paddlelike.framework.opdef import registry
from tests.ops.harness.collect import PADDLE2

__all__ = ["EXEMPT"]

#: {test file or folder: (why the contract cannot check them, operators)}
EXEMPT = {
    "tests/golden_runs/test_control.py": (
        "they run a block of a program",
        ["conditional_block", "conditional_block_grad", "recurrent", "recurrent_grad", "while", "while_grad"],
    ),
    "tests/ops/control/test_conditional_block_infer.py": (
        "it runs a block of a program",
        ["conditional_block_infer"],
    ),
    "tests/ops/control/test_tensor_array.py": (
        "they work on arrays of tensors, or leave outputs without a value",
        [
            "lod_array_length",
            "read_from_array",
            "select_input",
            "select_output",
            "tensor_array_to_tensor",
            "write_to_array",
        ],
    ),
    "tests/ops/control/test_split_lod_tensor.py": (
        "they are inverses of each other",
        ["merge_lod_tensor", "merge_lod_tensor_infer", "split_lod_tensor"],
    ),
    "tests/ops/control/test_rank_table.py": (
        "they work on rank tables",
        [
            "array_to_lod_tensor",
            "lod_rank_table",
            "lod_tensor_to_array",
            "max_sequence_len",
            "reorder_lod_tensor_by_rank",
            "reorder_lod_tensor_by_rank_grad",
            "shrink_rnn_memory",
        ],
    ),
    "tests/ops/control/test_callbacks.py": (
        "they write to the terminal, or call a function of the process",
        ["print", "py_func"],
    ),
    "tests/ops/recurrent/test_lstm.py": ("its inputs are arrays of tensors", ["beam_search_decode"]),
    "tests/ops/tensor/test_constant.py": ("it computes nothing", ["fake_init"]),
    "tests/ops/update/test_golden.py": ("its noise is compared with the real system's for a seed", ["dpsgd"]),
    "tests/ops/random/test_tensors.py": (
        "their numbers are compared with the real system's for a seed",
        [
            "gaussian_random",
            "gaussian_random_batch_size_like",
            "randint",
            "random_crop",
            "randperm",
            "sampling_id",
            "seed",
            "truncated_gaussian_random",
            "uniform_random",
            "uniform_random_batch_size_like",
        ],
    ),
    "tests/io": (
        "they read and write files, or stand for what an executor is fed and asked for",
        ["feed", "fetch", "load", "load_combine", "save", "save_combine"],
    ),
    "tests/backward/test_second_order_kernels.py": (
        "they are gradients of gradients",
        [name for name in registry.all_ops() if name.endswith("_grad_grad")],
    ),
    "tests/models": ("models of Paddle 2.6.2 hold them, with values", PADDLE2),
    "tests/distributed/collective": (
        "they need workers that run",
        [
            *(
                "allreduce",
                "broadcast",
                "c_allgather",
                "c_allreduce_max",
                "c_allreduce_min",
                "c_allreduce_prod",
            ),
            *("c_allreduce_sum", "c_broadcast", "c_comm_init", "c_comm_init_all", "c_gen_nccl_id"),
            *("c_reducescatter", "c_sync_calc_stream", "c_sync_comm_stream", "gen_nccl_id"),
            *("gather_from_owners", "reduce_to_owners", "sync_batch_norm"),
        ],
    ),
    "tests/distributed/test_growing_tables.py": (
        "they work on tables that grow",
        ["make_sparse_table", "sparse_embedding"],
    ),
    "tests/reader": (
        "they take batches from a reader",
        ["create_double_buffer_reader", "create_py_reader", "read"],
    ),
    "tests/distributed": (
        "they need trainers and servers that run",
        [
            "checkpoint_notify",
            "count_sparse_table",
            "distributed_lookup_table",
            "distributed_sparse_embedding",
            "fetch_barrier",
            "listen_and_serv",
            "lookup_sparse_table",
            "prefetch",
            "recv",
            "recv_save",
            "send",
            "send_barrier",
        ],
    ),
}
