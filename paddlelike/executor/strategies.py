"""BuildStrategy and ExecutionStrategy: Fluid's options for programs that run on several pieces of a batch.

All options can be set and read. These have an effect: ``BuildStrategy.gradient_scale_strategy`` (whether
gradients are averaged), ``reduce_strategy`` (whether the copies of a batch share their written variables, and
workers the optimizer's state), ``num_trainers`` and ``trainer_id`` (the number of workers, and the index of
this one), and with several workers ``sync_batch_norm``. The other options control passes and a scheduler that
do not exist here.
"""

from __future__ import annotations

from typing import Any, NoReturn

from paddlelike.errors import UnsupportedError


class _Options:
    """Options by name. Setting one that Fluid does not have raises AttributeError."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__} has no option {name!r}; it has {', '.join(vars(self))}"
            )
        self.__dict__[name] = value


class BuildStrategy(_Options):
    """Options of Fluid's graph passes.

    >>> import paddlelike as fluid
    >>> strategy = fluid.BuildStrategy()
    >>> strategy.fuse_all_reduce_ops = True
    """

    class ReduceStrategy:
        """How Fluid reduces gradients over devices."""

        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy:
        """How gradients are scaled over the copies: averaged, or added up."""

        CoeffNumDevice = 0
        One = 1
        Customized = 2

    async_mode: bool
    gradient_scale_strategy: int
    num_trainers: int
    reduce_strategy: int
    sync_batch_norm: bool
    trainer_id: int

    def __init__(self) -> None:
        super().__init__(
            async_mode=False,
            cache_runtime_context=False,
            debug_graphviz_path="",
            enable_auto_fusion=False,
            enable_backward_optimizer_op_deps=True,
            enable_inplace=True,
            enable_sequential_execution=False,
            fuse_all_optimizer_ops=False,
            fuse_all_reduce_ops=True,
            fuse_bn_act_ops=False,
            fuse_broadcast_ops=True,
            fuse_elewise_add_act_ops=False,
            fuse_relu_depthwise_conv=False,
            gradient_scale_strategy=self.GradientScaleStrategy.CoeffNumDevice,
            hierarchical_allreduce_inter_nranks=0,
            is_distribution=False,
            memory_optimize=None,
            mkldnn_enabled_op_types=set(),
            nccl_comm_num=1,
            num_trainers=1,
            reduce_strategy=self.ReduceStrategy.AllReduce,
            remove_unnecessary_lock=True,
            sync_batch_norm=False,
            trainer_id=0,
            trainers_endpoints=[],
            use_hierarchical_allreduce=False,
        )

    def _finalize_strategy_and_create_passes(self) -> NoReturn:
        """Raise UnsupportedError. Scripts insert ``multi_batch_merge_pass`` into Fluid's result of this
        method.
        """
        raise UnsupportedError(
            "build_strategy._finalize_strategy_and_create_passes: Fluid has graph passes, "
            "which do not exist here; multi_batch_merge_pass adds up the gradients of several batches",
            hint="feed these batches as one; RecomputeOptimizer then saves memory",
        )


class ExecutionStrategy(_Options):
    """Options of Fluid's scheduler.

    >>> import paddlelike as fluid
    >>> strategy = fluid.ExecutionStrategy()
    >>> strategy.num_threads = 2
    """

    def __init__(self) -> None:
        super().__init__(
            allow_op_delay=False,
            num_iteration_per_drop_scope=100,
            num_iteration_per_run=1,
            num_threads=0,
            use_cuda=False,
            use_experimental_executor=True,
            use_thread_barrier=False,
        )
