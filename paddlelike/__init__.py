"""Paddle Fluid 1.8's API, small and in Python: ``import paddlelike as fluid``.

Names, argument order, defaults and return values are Fluid's, and so are the files: what Paddle writes
is read here, and the other way round.

>>> import paddlelike as fluid
>>> with fluid.program_guard(fluid.Program(), fluid.Program()):
...     x = fluid.data(name="x", shape=[None, 13], dtype="float32")
...     y = fluid.layers.fc(input=x, size=1)
>>> y.shape
(-1, 1)

``__init__.pyi`` lists the names, each with the module that defines it; that module is imported when the name
is first used.
"""

import sys as _sys

from paddlelike import hooks as _hooks, lazy as _lazy, left_out as _left_out
from paddlelike.foundation import tracebacks as _tracebacks

__version__ = "1.0.0"

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")

# The hooks: functions of higher floors that lower floors call.
_hooks.provide(
    # Methods of programs, blocks, operators and variables.
    encode_program="paddlelike.framework.codec.encode:encode_program",
    decode_program="paddlelike.framework.codec.decode:decode_program",
    decode_message="paddlelike.framework.codec.decode:decode_message",
    read_paddle3="paddlelike.interop.paddle3.read:read_pir",
    format_program="paddlelike.framework.codec.text:format_program",
    format_block="paddlelike.framework.codec.text:format_block",
    format_variable="paddlelike.framework.codec.text:format_variable",
    format_operator="paddlelike.framework.codec.text:format_operator",
    copy_program="paddlelike.framework.passes.twins:clone",
    copy_for_test="paddlelike.framework.passes.clone:copy_for_test",
    copy_for_inference="paddlelike.framework.passes.clone:copy_for_inference",
    prune="paddlelike.framework.passes.clone:prune",
    build_graph="paddlelike.framework.passes.views:build_graph",
    combine="paddlelike.framework.expressions.arithmetic:combine",
    cast="paddlelike.framework.expressions.arithmetic:cast",
    negate="paddlelike.framework.expressions.arithmetic:negate",
    getitem="paddlelike.framework.expressions.indexing:getitem",
    # The rest.
    explain_python_error="paddlelike.framework.hints:explain_python_error",
    load_operator="paddlelike.ops:load_operator",
    load_operators="paddlelike.ops:load_operators",
    run_compiled="paddlelike.compiled.run:run_program",
    explain_compiled="paddlelike.compiled.explanation:explain",
    explain_copies="paddlelike.compiled.explanation:explain_copies",
    run_copies="paddlelike.compiled.run:run_copies",
    load_jax="paddlelike.compiled.backend:load_jax",
    count_gpus="paddlelike.compiled.backend:count_gpus",
    connect_remote="paddlelike.distributed:connect_remote",
    find_workers="paddlelike.distributed.collective:find_workers",
    complete_state="paddlelike.distributed.collective.data_parallel:complete_state",
    distribute_program="paddlelike.distributed.collective.data_parallel:distribute_program",
    decorate_optimizer="paddlelike.fluid.contrib.mixed_precision:decorate",
    join_workers="paddlelike.distributed.collective:join_workers",
    connect_workers="paddlelike.distributed.training_workers:connect_workers",
    distribute_training="paddlelike.distributed.training_workers:distribute_training",
    open_files="paddlelike.io.save.files:open_files",
    draw_program="paddlelike.inspection.drawing:draw",
    format_html="paddlelike.view.html:format_html",
    plot_log="paddlelike.view.curves:plot_log",
    print_layers="paddlelike.inspection.layers:print_layers",
    find_partition="paddlelike.distributed:find_partition",
    create_weight_normalized="paddlelike.layers.nn.normalization.weight_norm:create_weight_normalized",
    compute_onnx_value="paddlelike.interop.onnx.importer.folding:compute",
    find_predictor_name="paddlelike.inference:find_name",
    find_graph_name="paddlelike.framework.passes.ir_graph:find_name",
)

# Fluid's names for modules that have another name here; an empty one is a package that only holds others.
_FURTHER = {
    "annotations": "fluid.annotations",
    "communicator": "distributed.communicator",
    "compat": "import_paddle.compat",
    "compiler": "executor",
    "contrib": "fluid.contrib",
    "core_avx": "core",
    "data_feed_desc": "reader.data_feed_desc",
    "data_feeder": "reader",
    "data_generator": "reader.data_generator",
    "default_scope_funcs": "fluid.default_scope_funcs",
    "distributed.fs_wrapper": "distributed.fleet.file_systems",
    "dygraph": "fluid.dygraph",
    "fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay": "fluid.contrib.extend_optimizer",
    "fluid.contrib.mixed_precision.decorator": "fluid.contrib.mixed_precision",
    "fluid.contrib.mixed_precision.fp16_lists": "fluid.contrib.mixed_precision",
    "fluid.contrib.reader.distributed_reader": "fluid.contrib.reader",
    "fluid.contrib.slim.quantization.quantization_pass": "fluid.contrib.slim.quantization",
    "fluid.contrib.utils.hdfs_utils": "distributed.fleet.hdfs",
    "fluid.incubate.data_generator": "reader.data_generator",
    "fluid.incubate.fleet": "",
    "fluid.incubate.fleet.base": "",
    "fluid.incubate.fleet.base.fleet_base": "distributed.fleet.base",
    "fluid.incubate.fleet.base.mode": "distributed.fleet.base",
    "fluid.incubate.fleet.base.role_maker": "distributed.fleet.role_maker",
    "fluid.incubate.fleet.collective": "distributed.fleet.collective",
    "fluid.incubate.fleet.parameter_server": "",
    "fluid.incubate.fleet.parameter_server.distribute_transpiler": "distributed.fleet.parameter_server",
    "fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy": "distributed.fleet.strategy",  # noqa: E501
    "fluid.incubate.fleet.parameter_server.pslib": "distributed.fleet.pslib",
    "fluid.incubate.fleet.parameter_server.version": "fluid.incubate.version",
    "fluid.incubate.fleet.utils": "",
    "fluid.incubate.fleet.utils.fleet_util": "distributed.fleet.fleet_util",
    "fluid.incubate.fleet.utils.hdfs": "distributed.fleet.hdfs",
    "fluid.incubate.fleet.utils.utils": "distributed.fleet.optimizer",
    "incubate": "fluid.incubate",
    "install_check": "fluid.install_check",
    "layer_helper": "layers.helper",
    "layer_helper_base": "layers.helper",
    "lod_tensor": "reader",
    "log_helper": "fluid.log_helper",
    "parallel_executor": "executor",
    "reader.decorator": "reader.readers",
    "transpiler": "distributed.transpiler",
    "transpiler.collective": "distributed.collective.transpiler",
    "transpiler.details": "fluid.program_utils",
    "transpiler.details.program_utils": "fluid.program_utils",
    "transpiler.distribute_transpiler": "distributed.transpiler",
    "transpiler.geo_sgd_transpiler": "distributed.transpiler.transpiler",
    "transpiler.ps_dispatcher": "distributed.transpiler.slicing",
    "transpiler.memory_optimization_transpiler": "framework.environment",
    "proto": "fluid.proto",
    "utils": "import_paddle.plot",
    "utils.plot": "import_paddle.plot",
    "version": "import_paddle.version",
    "wrapped_decorator": "fluid.wrapped_decorator",
}
# The modules of ``paddle.fluid`` beside those: the same modules as without ``fluid``.
_SAME = """
    average backward clip core dataset distributed evaluator executor framework initializer input
    io layers metrics nets optimizer param_attr profiler reader regularizer unique_name
"""
_BELOW_FLUID = [*_SAME.split(), *(name for name, origin in _FURTHER.items() if "fluid." not in name + origin)]
_sys.meta_path[:0] = [
    _lazy.AliasFinder(
        {f"paddlelike.{name}": origin and f"paddlelike.{origin}" for name, origin in _FURTHER.items()}
        | {f"paddlelike.fluid.{name}": f"paddlelike.{name}" for name in _BELOW_FLUID}
        | _lazy.MOVED
    ),
    _left_out.LeftOutFinder(),
]
_lazy.add_function_module("paddlelike.batch")
_tracebacks.install_hook()
