"""Why modules, functions and classes of Fluid are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """Why something is left out, and what to do instead."""

    why: str
    instead: str


DYGRAPH: Final = Reason(
    "only static programs are built and run here; the dynamic graph (dygraph) is left out",
    "build the network with fluid.layers inside fluid.program_guard(main, startup) and run it by "
    "fluid.Executor; fluid.load_program_state reads the .pdparams of save_dygraph",
)
_PSLIB: Final = Reason(
    "pslib, the parameter server inside Baidu's own builds of Paddle, is left out",
    "use fluid.incubate.fleet.parameter_server.distribute_transpiler",
)
_SLIM: Final = Reason(
    "compression by strategies in a configuration file (slim: pruning, distillation, search) is left out",
    "PaddleSlim 1.1 (pip install paddleslim==1.1.1) prunes and distils by functions; "
    "fluid.contrib.slim.quantization quantizes",
)
_TRAINER: Final = Reason(
    "it is a part of the C++ trainers of Paddle, which are left out",
    "use fluid.Executor.train_from_dataset, which needs none of it",
)
_HIGH_LEVEL: Final = Reason(
    "the high-level API over the dynamic graph is left out",
    "use fluid.layers and fluid.Executor",
)
_PADDLE_2: Final = Reason(
    "it belongs to Paddle 2; the API here is that of Paddle 1.8",
    "write the script with paddle.fluid",
)
_ONEDNN: Final = Reason(
    "the int8 kernels of oneDNN are left out",
    "QuantizationFreezePass and ConvertToInt8Pass write models that other engines run",
)
_COMPLEX: Final = Reason(
    "complex tensors belong to the dynamic graph, which is left out",
    "keep the real and the imaginary part in two variables",
)
_ENGINE: Final = Reason(
    "the C++ inference engine is left out",
    "fluid.io.load_inference_model(dirname, exe) and exe.run run the same files",
)
_DRAWING: Final = Reason(
    "drawing programs is left out",
    "print(program) shows it; onnx and netron show saved models",
)
_TABLES: Final = Reason(
    "tables on servers are loaded and saved with everything else",
    "use fluid.io.save_persistables and fluid.io.load_persistables",
)
_MATCHING: Final = Reason(
    "it has a kernel for GPUs alone, or belongs to Baidu's search engine",
    "use layers.embedding and layers.hash",
)
_FLOAT16: Final = Reason(
    "there is no float16 arithmetic on the CPU",
    "contrib.mixed_precision.decorate trains in float32",
)
_CORE: Final = Reason(
    "it builds or reaches operators of Paddle's C++ core, which is not here",
    "layers.py_func runs a Python function as an operator",
)
_IMAGES: Final = Reason(
    "it belongs to Paddle before Fluid",
    "paddle.dataset.image and paddle.utils.Ploter do the same",
)
_INNER: Final = Reason(
    "it is an internal part of Fluid, which this package implements differently",
    "the public functions of fluid.layers, fluid.transpiler and the launcher serve the same purpose",
)
_MPI: Final = Reason(
    "jobs under MPI and Hadoop's scheduler are left out",
    "start the job by python -m paddlelike.distributed.launch",
)


def _list_names(*rows: tuple[Reason, str] | tuple[Reason, str, str]) -> dict[str, Reason]:
    """Return reasons by name; the third text of a row is a prefix for its names."""
    return {
        start + name: reason
        for reason, names, *prefixes in rows
        for name in names.split()
        for start in (prefixes[0].split() if prefixes else [""])
    }


_SHARED: Final = Reason(
    "its outputs share the memory of FusedOutput, where variables here have arrays of their own",
    "join them by layers.concat of layers.reshape(x, [-1]), and cut the result by layers.split",
)
_COMPRESSED: Final = Reason(
    "compressed gradients, and learning on devices of users, are left out",
    "fluid.optimizer.Momentum and transpiler.DistributeTranspiler send whole gradients",
)

#: Operators, by type.
OPERATORS: Final[Mapping[str, Reason]] = _list_names(
    (_COMPRESSED, "dgc_clip_by_norm dgc_momentum fl_listen_and_serv"),
    (_ONEDNN, "dequantize quantize requantize"),
    (_PSLIB, "pull_box_sparse pull_sparse pull_sparse_v2 push_dense"),
    (_CORE, "delete_var get_places run_program"),
    (_MATCHING, "pyramid_hash rank_attention"),
    (_SHARED, "coalesce_tensor"),
)
#: Modules, by Fluid's path without the leading "fluid."; a reason holds for everything below, too.
MODULES: Final[Mapping[str, Reason]] = _list_names(
    (
        _INNER,
        """
            transpiler.details layers.device layers.math_op_patch distributed.utils
            distributed.cloud_utils check_import_scipy
        """,
    ),
    (_COMPLEX, "complex"),
    (_FLOAT16, "contrib.mixed_precision.fp16_utils"),
    (_SLIM, "core distillation graph nas prune searcher quantization.quantization_strategy", "contrib.slim."),
    (
        _ONEDNN,
        "mkldnn_post_training_strategy qat2_int8_mkldnn_pass qat_int8_mkldnn_pass",
        "contrib.slim.quantization.",
    ),
    (_TABLES, "contrib.utils.lookup_table_utils"),
    (_ENGINE, "core_noavx"),
    (_TRAINER, "device_worker multiprocess_utils trainer_desc trainer_factory"),
    (
        DYGRAPH,
        """
            dataloader dygraph.backward_strategy dygraph.checkpoint dygraph.dygraph_to_static
            dygraph.jit dygraph.learning_rate_scheduler dygraph.math_op_patch dygraph.parallel_helper
            dygraph.profiler dygraph.static_runner dygraph.tracer dygraph.varbase_patch_methods
            dygraph_utils
        """,
    ),
    (_DRAWING, "debugger graphviz net_drawer"),
    (
        _PSLIB,
        """
            distributed.downpour distributed.node incubate.fleet.parameter_server.pslib.node
            incubate.fleet.parameter_server.pslib.optimizer_factory
            incubate.fleet.parameter_server.pslib.ps_pb2
        """,
    ),
    (
        _MPI,
        """
            distributed.helper distributed.ps_instance incubate.fleet.utils.fleet_barrier_util
            incubate.fleet.utils.http_server
        """,
    ),
    (_HIGH_LEVEL, "incubate.hapi"),
    (_CORE, "op sysconfig"),
    (_IMAGES, "utils.image_util utils.plotcurve utils.preprocess_img utils.preprocess_util"),
)
#: Functions and classes, in the same way.
NAMES: Final[Mapping[str, Reason]] = _list_names(
    (
        _INNER,
        """
            contrib.utils.hdfs_utils.multi_download contrib.utils.hdfs_utils.multi_upload core.Executor
            core.Variable core.ParallelExecutor core.kControlDepVarName core.kNewGradSuffix
            core.kZeroVarSuffix core.loaded_var_suffix distributed.launch.get_cluster_from_args
            distributed.launch.get_gpus distributed.launch.launch distributed.launch_ps.launch
            distributed.launch_ps.parse_args distributed.launch_ps.start_procs
            incubate.fleet.utils.utils.check_pruned_program_vars
            incubate.fleet.utils.utils.check_saved_vars_try_dump incubate.fleet.utils.utils.graphviz
            incubate.fleet.utils.utils.parse_program incubate.fleet.utils.utils.program_type_trans
            incubate.fleet.utils.utils.try_load_model_vars layers.layer_function_generator.deprecated
            layers.layer_function_generator.generate_activation_fn
            layers.layer_function_generator.generate_layer_fn backward._append_backward_ops_
            backward._find_op_path_ distributed.launch.find_free_ports distributed.launch.get_cluster
            distributed.launch.start_local_trainers
        """,
    ),
    (
        _INNER,
        """
            DistributedMode ServerRuntimeConfig VarBlock VarStruct VarsDistributed delete_ops
            find_op_by_output_arg log same_or_split_var
        """,
        "transpiler. transpiler.distribute_transpiler.",
    ),
    (
        _INNER,
        "delete_ops find_op_by_input_arg find_op_by_output_arg get_indent_space",
        "transpiler.details.program_utils.",
    ),
    (_CORE, "framework.OpProtoHolder"),
    (
        DYGRAPH,
        """
            BackwardStrategy VarBase ComplexVariable core.VarBase enable_dygraph enable_imperative
            framework.ComplexVariable framework.ParamBase io.BatchSampler io.Dataset
            io.default_collate_fn load_dygraph reader.default_collate_fn save_dygraph
        """,
    ),
    (
        DYGRAPH,
        """
            enable_dygraph enable_imperative grad guard param_guard program_desc_tracing_guard
            switch_to_static_graph to_variable
        """,
        "dygraph. dygraph.base.",
    ),
    (
        DYGRAPH,
        """
            BackwardStrategy CosineDecay DataParallel ExponentialDecay InverseTimeDecay LambdaDecay
            LinearLrWarmup MultiStepDecay NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay
            ProgramTranslator ReduceLROnPlateau StaticModelRunner StepDecay TracedLayer declarative
            dygraph_to_static_func load_dygraph parallel.DataParallel parallel.ParallelStrategy
            parallel.prepare_context prepare_context save_dygraph
        """,
        "dygraph.",
    ),
    (_SLIM, "contrib.Compressor contrib.slim.Compressor contrib.slim.quantization.QuantizationStrategy"),
    (
        _ONEDNN,
        "MKLDNNPostTrainingQuantStrategy Qat2Int8MkldnnPass QatInt8MkldnnPass",
        "contrib.slim.quantization.",
    ),
    (_MATCHING, "rank_attention search_pyramid_hash", "contrib. contrib.layers. contrib.layers.nn."),
    (
        _TABLES,
        """
            convert_dist_to_sparse_program load_persistables_for_increment
            load_persistables_for_inference multi_download multi_upload
        """,
        "contrib. contrib.utils.",
    ),
    (
        _CORE,
        """
            BlockDesc BoxPS CpuPassStrategy Dataset DeviceContext DistCommunicator EventSortingKey
            ExecutorPrepareContext FetchList FetchUnmergedList Fleet GlobalVarGetterSetterRegistry Gloo
            GpuPassStrategy IterableDatasetWrapper LoDTensorBlockingQueue LodRankTable
            MultiDeviceFeedReader OpDesc Operator OrderedMultiDeviceFeedReader
            OrderedMultiDeviceLoDTensorBlockingQueue ParallelStrategy Pass PassBuilder PassStrategy
            ProfilerState ProgramDesc ProgramDescTracer Reader TrainerBase build_adjacency_list
            create_py_reader diff_tensor_shape disable_profiler enable_profiler from_dlpack
            get_all_op_protos get_fetch_variable get_grad_op_desc get_op_attrs_default_value get_pass
            get_variable_tensor globals graph_num graph_safe_remove_nodes has_circle has_grad_op_maker
            has_infer_inplace has_non_empty_grad_op_maker infer_no_need_buffer_slots init_devices
            init_gflags init_glog init_lod_tensor_blocking_queue is_profiler_enabled kAll kAllOpDetail
            kAve kCPU kCUDA kCalls kDefault kDisabled kMax kMin kOpDetail kTotal load_op_library
            op_support_gpu prune prune_backward reset_profiler run_cmd set_feed_variable set_num_threads
            set_paddle_lib_path size_of_dtype topology_sort
        """,
        "core.",
    ),
    (_ENGINE, "MkldnnQuantizerConfig NativePaddlePredictor PaddlePassBuilder", "core."),
    (
        DYGRAPH,
        """
            BackwardStrategy Layer Tracer TracerOption dygraph_partial_grad set_tracer_option
            start_imperative_gperf_profiler stop_imperative_gperf_profiler
        """,
        "core.",
    ),
)

#: Reasons for names of ``paddle`` itself, not of ``paddle.fluid``.
PADDLE_NAMES: Final = (_HIGH_LEVEL, _PADDLE_2, _COMPLEX, _IMAGES)

_SEED: Final = "set fluid.default_startup_program().random_seed = 1, and the main program's, before they run"
_NETWORK: Final = "networks are built by functions: y = fluid.layers.fc(x, 10, act='relu')"
#: Names of other frameworks and of Paddle 2, in lower case, which no function here resembles: the next step.
OF_OTHERS: Final[Mapping[str, str]] = {
    "cuda": "fluid.is_compiled_with_cuda() says whether there is a GPU; fluid.CUDAPlace(0) is the first one",
    "disable_static": "programs are static here: build them with fluid.layers, run them by fluid.Executor",
    "enable_static": "programs are static here already: leave the call out",
    "from_numpy": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
    "manual_seed": _SEED,
    "model": f"{_NETWORK}; paddlelike.training.train fits them",
    "module": _NETWORK,
    "nn": _NETWORK,
    "no_grad": "only minimize builds gradients; variable.stop_gradient = True ends them at a variable",
    "save_model": "fluid.io.save_inference_model exports it for prediction, fluid.save saves all its values",
    "seed": _SEED,
    "sequential": _NETWORK,
    "set_device": "the place says the device: fluid.Executor(fluid.CPUPlace()), or fluid.CUDAPlace(0)",
    "set_seed": _SEED,
    "to_tensor": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
}
