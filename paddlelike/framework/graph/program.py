"""A program: blocks of operators over named variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from paddlelike.errors import GraphError
from paddlelike.foundation.current import Current
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.desc import ProgramDesc
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.roles import Roles
from paddlelike.framework.graph.states import EncodedState
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.hooks import Hook

if TYPE_CHECKING:
    import networkx as nx

_decode_program: Final[Hook[..., Program]] = Hook("decode_program")
_format_program: Final[Hook[..., str]] = Hook("format_program")
_draw_program: Final[Hook[..., Any]] = Hook("draw_program")
_print_layers: Final[Hook[[Program], None]] = Hook("print_layers")
_build_graph: Final[Hook[[Program], nx.DiGraph[Any]]] = Hook("build_graph")
_copy_program: Final[Hook[[Program], Program]] = Hook("copy_program")
_copy_for_test: Final[Hook[[Program], Program]] = Hook("copy_for_test")
_prune: Final[Hook[..., Program]] = Hook("prune")
_copy_for_inference: Final[Hook[..., Program]] = Hook("copy_for_inference")

#: Attributes that the transpiler for distributed training sets.
_OF_JOBS: Final = (
    "_is_distributed",
    "_is_chief",
    "_endpoints",
    "_ps_endpoint",
    "_parameters_on_pservers",
    "_distributed_lookup_table",
    "_sharding",
    "_workers",
)


class Program(EncodedState, Roles, Displayed):
    """A graph of operators in blocks, which an :class:`Executor` runs.

    A network is built into two programs: the main program computes and trains, the startup program
    gives the persistable variables their first values.

    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.program_guard(main, startup):
    ...     fluid.default_main_program() is main
    True
    """

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "plans": dict,
        "_started": lambda: None,
        "_caution": lambda: None,
        "_collection_parameters": dict,  # of paddlelike.collection
        "_collection_rows": dict,
        "_cntk_origin": dict,  # of paddlelike.interop.cntk
    }

    _workers = 1  # in mode nccl2: only CompiledProgram.with_data_parallel adds up the gradients
    has_operator_versions = False  # whether the encoding has the table of 1.8.5's operator versions

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = [Block(self, 0)]
        self.current_block_idx = 0
        self._seed = 0
        self._version = 0  # every change increases it, so that cached plans are dropped
        self.plans: dict[Any, Any] = {}  # the executors' plans, by feeds and fetches
        self._backward_passes = 0  # number of operators appended so far
        self.encoded: Any = None  # the message it was read from, for fields that this class does not have
        self.is_versioned = True  # whether the encoding has a version; Paddle's pruned programs have none
        # Set by the transpiler for distributed training.
        self._is_distributed = False
        self._is_chief = False
        self._endpoints: list[str] = []
        self._ps_endpoint: str | None = None
        self._parameters_on_pservers: Any = None
        self._distributed_lookup_table: str | None = None
        self._startup: Program | None = None  # the startup program of its last program_guard
        self._fleet_opt: Any = None  # pslib's description of a job, for scripts that read or change it
        self._before_batch: Any = None  # called before each batch of a dataset: program, its number, scope
        self._started: Any = None  # a weak reference to the last scope that it initialized
        self._sharding: Any = None  # the owner of each part of an optimizer's state divided among workers
        self._caution: Any = None  # called with the program and the scope before each run; it may warn

    # Blocks, variables, seed

    @property
    def num_blocks(self) -> int:
        """The number of blocks.

        >>> import paddlelike as fluid
        >>> fluid.Program().num_blocks
        1
        """
        return len(self.blocks)

    @property
    def paddle_version(self) -> int:
        """The version of Paddle that wrote the file of this program (2006002 for 2.6.2); 0 without a file.

        >>> import paddlelike as fluid
        >>> fluid.Program().paddle_version
        0
        """
        return 0 if self.encoded is None else int(self.encoded.version.version)

    def block(self, index: int) -> Block:
        """Return the block of that ``index``.

        Parameters
        ----------
        index
            The index of the block, from 0.

        Returns
        -------
        Block
            The block; index 0 is the global one.

        Raises
        ------
        IndexError
            There is no such block.

        >>> import paddlelike as fluid
        >>> fluid.Program().block(0).idx
        0
        """
        return self.blocks[index]

    def global_block(self) -> Block:
        """Return block 0.

        Returns
        -------
        Block
            Block 0, which holds the parameters.

        >>> import paddlelike as fluid
        >>> x = fluid.data("x", [None, 1])
        >>> fluid.default_main_program().global_block().var("x") is x
        True
        """
        return self.blocks[0]

    def current_block(self) -> Block:
        """Return the block that layers append to.

        Returns
        -------
        Block
            The block of the innermost loop or branch that is being built, else block 0.

        >>> import paddlelike as fluid
        >>> x = fluid.data("x", [None, 1])
        >>> fluid.default_main_program().current_block().idx
        0
        """
        return self.blocks[self.current_block_idx]

    def list_vars(self) -> Iterator[Variable]:
        """Yield all variables, block by block in order of creation.

        Returns
        -------
        Iterator
            The variables of all blocks, parameters included.

        >>> import paddlelike as fluid
        >>> hidden = fluid.layers.fc(fluid.data("x", [None, 2]), 3)
        >>> [v.name for v in fluid.default_main_program().list_vars() if v.persistable]
        ['fc_0.w_0', 'fc_0.b_0']
        """
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        """Return the parameters of all blocks.

        Returns
        -------
        list
            The parameters, block by block in order of creation.

        >>> import paddlelike as fluid
        >>> hidden = fluid.layers.fc(fluid.data("x", [None, 2]), 3)
        >>> [(p.name, p.shape) for p in fluid.default_main_program().all_parameters()]
        [('fc_0.w_0', (2, 3)), ('fc_0.b_0', (3,))]
        """
        return [v for v in self.list_vars() if isinstance(v, Parameter)]

    @property
    def random_seed(self) -> int:
        """The seed that initializers and dropout copy when they are built; 0 for a new seed in every run.

        Raises
        ------
        ValueError
            It is set to something other than an integer.

        >>> import paddlelike as fluid
        >>> fluid.default_startup_program().random_seed = 90
        >>> noise = fluid.layers.create_parameter([2, 2], "float32", name="noise")
        >>> exe = fluid.Executor()
        >>> (first,) = exe.run(fluid.default_startup_program(), fetch_list=["noise"])
        >>> (second,) = exe.run(fluid.default_startup_program(), fetch_list=["noise"])
        >>> bool((first == second).all())
        True
        """
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise ValueError(f"random_seed is {seed!r}, expected an integer")
        self._seed = seed

    def global_seed(self, seed: int = 0) -> None:
        """Set the ``seed`` of this program and of the default programs.

        Parameters
        ----------
        seed
            The seed; 0 for a random one.

        >>> import paddlelike as fluid
        >>> fluid.default_startup_program().global_seed(90)
        >>> fluid.default_main_program().random_seed
        90
        """
        MAIN_PROGRAM.get().random_seed = STARTUP_PROGRAM.get().random_seed = seed
        self.random_seed = seed

    @property
    def desc(self) -> ProgramDesc:
        """Fluid's C++ description of this program.

        >>> import paddlelike as fluid
        >>> type(fluid.Program().desc.serialize_to_string())
        <class 'bytes'>
        """
        return ProgramDesc(self)

    @staticmethod
    def parse_from_string(binary_str: bytes, *, trusted: bool = False) -> Program:
        """Return the program in a serialized ProgramDesc; parameters become plain variables, as in Fluid.

        Parameters
        ----------
        binary_str
            The bytes of a ProgramDesc, as a file ``__model__`` holds them.
        trusted
            Whether an Executor may run operators that reach files, other processes, Python functions or the
            terminal.

        Returns
        -------
        Program
            A new program with the blocks, variables and operators of the bytes.

        Raises
        ------
        FormatError
            The bytes are not a usable program.
        TypeError
            ``binary_str`` is not bytes.

        >>> import paddlelike as fluid
        >>> y = fluid.layers.relu(fluid.data("x", [None, 2]))
        >>> data = fluid.default_main_program().desc.serialize_to_string()
        >>> fluid.Program.parse_from_string(data)
        <Program: 1 operators, 2 variables, 0 parameters>
        """
        return _decode_program.function(binary_str, trusted=trusted)

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Return this program as protobuf text; ``with_details`` adds facts that a ProgramDesc cannot store.

        Parameters
        ----------
        throw_on_error
            Accepted for scripts of Fluid; it has no effect.
        with_details
            Whether to add facts that a ProgramDesc cannot store.

        Returns
        -------
        str
            The text of a ProgramDesc, as protobuf's text format has it.

        >>> import paddlelike as fluid
        >>> fluid.Program().to_string(throw_on_error=True).splitlines()[:2]
        ['blocks {', '  idx: 0']
        """
        return _format_program.function(self, with_details=with_details)

    def __str__(self) -> str:
        return self.to_string(True)

    def __repr__(self) -> str:
        blocks = f" in {len(self.blocks)} blocks" if len(self.blocks) > 1 else ""
        return (
            f"<Program: {sum(len(block.ops) for block in self.blocks)} operators{blocks}, "
            f"{sum(len(block.vars) for block in self.blocks)} variables, "
            f"{len(self.all_parameters())} parameters>"
        )

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        block: int = 0,
        *,
        only_operators: bool = False,
        level: str | None = None,
    ) -> object:
        """Return a block as a graph of operators and variables, which a notebook shows as a picture.

        By default a block of more than 150 operators is shown as its layers. ``level="variables"`` shows
        everything; ``"layers"``, ``"chains"`` and ``"blocks"`` show less and less, and ``"blocks"`` draws
        equal blocks of layers as one node. With ``path`` the picture is also written there, as ``.svg``,
        ``.png``, ``.pdf`` or ``.dot``. A ``.png`` or ``.pdf`` needs Graphviz. ``only_operators`` leaves out
        the variables; for the forward part alone use ``program.clone(for_test=True).plot()``.

        Parameters
        ----------
        path
            A ``.svg``, ``.png``, ``.pdf`` or ``.dot`` file to write; None for none.
        block
            The index of the block.
        only_operators
            Whether variables are left out.
        level
            ``"variables"``, ``"layers"``, ``"chains"`` or ``"blocks"``; None to choose by size.

        Returns
        -------
        Drawing
            The graph; its attribute ``dot`` is the text, and a notebook shows the picture.

        Raises
        ------
        GraphError
            There is no such block.
        UnsupportedError
            ``path`` has another ending.
        ExtraMissingError
            ``path`` is a ``.png`` or ``.pdf``, and Graphviz is not installed.

        >>> import paddlelike as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()):
        ...     y = fluid.layers.relu(fluid.data("x", [None, 4]))
        >>> print(main.plot().dot.splitlines()[0])
        digraph program {
        """
        return _draw_program.function(self, path, block, only_operators=only_operators, level=level)

    def summary(self) -> None:
        """Print the layers of the forward part: operators, shapes of outputs, parameters, and the totals.

        :func:`paddlelike.inspection.list_layers` returns the same as values; :meth:`to_string` returns the
        text of every operator.

        >>> import paddlelike as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        ...     y = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
        >>> main.summary()
        layer  operators            output   parameters  reads
        ------------------------------------------------------
        x      (input)              [-1, 4]           0
        fc_0   mul elementwise_add  [-1, 3]          15  x
        ------------------------------------------------------
        parameters: 15 (60 bytes), 15 trained, 0 not trained
        operators: 2 forward
        """
        _print_layers.function(self)

    def graph(self) -> nx.DiGraph[Any]:
        """Return operators and variables as a directed networkx graph, for tools and pictures.

        Returns
        -------
        networkx.DiGraph
            A node for each operator and each variable; the edges go from inputs to operators and from these
            to outputs.

        >>> import networkx
        >>> import paddlelike as fluid
        >>> y = fluid.layers.relu(fluid.data("x", [None, 2]))
        >>> networkx.is_directed_acyclic_graph(fluid.default_main_program().graph())
        True
        """
        return _build_graph.function(self)

    # Copies

    @pause_collection
    def clone(self, for_test: bool = False) -> Program:
        """Return a copy. With ``for_test`` only the forward part is copied, with dropout and batch_norm in
        test mode.

        Parameters
        ----------
        for_test
            Whether to leave out the backward pass and put layers into test mode.

        Returns
        -------
        Program
            A new program; this one does not change.

        >>> import paddlelike as fluid
        >>> kept = fluid.layers.dropout(fluid.data("x", [None, 2]), 0.5)
        >>> tested = fluid.default_main_program().clone(for_test=True)
        >>> [op.attr("is_test") for op in tested.global_block().ops]
        [True]
        """
        return _copy_for_test.function(self) if for_test else _copy_program.function(self)

    def _prune(self, targets: Sequence[Variable | Operator | str] | Variable | Operator | str) -> Program:
        """Return a copy that computes ``targets`` and nothing else. Raises GraphError for unknown targets."""
        return self._prune_with_input([], targets)

    @pause_collection
    def _prune_with_input(
        self,
        feeded_var_names: Sequence[str],
        targets: Sequence[Variable | Operator | str] | Variable | Operator | str,
    ) -> Program:
        if isinstance(targets, Variable | Operator | str):
            targets = [targets]
        block = self.global_block()
        ops = [target for target in targets if isinstance(target, Operator)]
        names: list[Any] = [getattr(one, "name", one) for one in targets if not isinstance(one, Operator)]
        unknown = [op.type for op in ops if op not in block.ops]
        unknown += [n for n in names if not isinstance(n, str) or not block._has_var_recursive(n)]
        if unknown:
            raise GraphError(
                f"the program cannot be pruned to {unknown}: it has no such variables or operators",
                hint="pass variables or operators of the outermost block, or names of variables",
            )
        return _prune.function(self, feeds=list(feeded_var_names), targets=names, ops=ops)

    def _inference_optimize(self, prune_read_op: bool = True) -> Program:
        return _copy_for_inference.function(self, without_readers=prune_read_op)

    def _copy_dist_param_info_from(self, other: Program) -> None:
        """Copy the attributes that the distributed transpiler has set on another program."""
        for name in _OF_JOBS:
            setattr(self, name, getattr(other, name))

    def _copy_param_info_from(self, other: Program) -> None:
        """Turn the variables that are parameters in another program into parameters."""
        block = self.global_block()
        for parameter in other.global_block().iter_parameters():
            if block.has_var(parameter.name):
                block.vars[parameter.name] = parameter.clone_into(block)

    def _copy_data_info_from(self, other: Program, *_: object) -> None:
        """Turn the variables that are inputs of another program into inputs."""
        for name, variable in other.global_block().vars.items():
            if name in self.global_block().vars:
                self.global_block().vars[name].is_data = variable.is_data

    # Changes

    def _sync_with_cpp(self) -> None:
        """Do nothing: Fluid has a second copy of the graph in C++."""

    def _note_change(self) -> None:
        self._version += 1
        if self.plans:
            self.plans.clear()

    def _create_block(self, parent_idx: int | None = None) -> Block:
        parent = self.current_block_idx if parent_idx is None else parent_idx
        self.blocks.append(Block(self, len(self.blocks), parent))
        self.current_block_idx = len(self.blocks) - 1
        self._note_change()
        return self.current_block()

    def _rollback(self) -> None:
        self.current_block_idx = self.current_block().parent_idx


#: The programs that layers and initializers are built into.
MAIN_PROGRAM: Final = Current(Program())
STARTUP_PROGRAM: Final = Current(Program())
