"""The names of ``fluid.io``, and where each is defined."""

from paddlelike.io.asynchronous import PendingSave
from paddlelike.io.calls import _clone_var_in_block_ as _clone_var_in_block_
from paddlelike.io.calls import (
    get_program_parameter,
    get_program_persistable_vars,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
)
from paddlelike.io.checkpoints.checkpoint import Checkpoint
from paddlelike.io.checkpoints.checkpoints import Checkpoints
from paddlelike.io.export.load import load_inference_model
from paddlelike.io.export.save import save_inference_model
from paddlelike.io.load.load import load_params, load_persistables, load_vars
from paddlelike.io.load.preview import fit_state, plan_load
from paddlelike.io.load.slices import load_slice
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.report import LoadReport, SaveReport
from paddlelike.io.rules.rule import Init, Rename, Skip
from paddlelike.io.rules.rules import Rules
from paddlelike.io.save.compact import compact
from paddlelike.io.save.save import save_params, save_persistables, save_vars
from paddlelike.io.state import load, load_program_state, save, set_program_state
from paddlelike.io.training_log import TrainingLog
from paddlelike.io.verify import Verification, verify
from paddlelike.reader import (
    ComposeNotAligned,
    DataLoader,
    PyReader,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "ComposeNotAligned",
    "DataLoader",
    "Init",
    "LoadPlan",
    "LoadReport",
    "PendingSave",
    "PyReader",
    "Rename",
    "Rules",
    "SaveReport",
    "Skip",
    "TrainingLog",
    "Verification",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compact",
    "compose",
    "firstn",
    "fit_state",
    "get_program_parameter",
    "get_program_persistable_vars",
    "is_belong_to_optimizer",
    "is_parameter",
    "is_persistable",
    "load",
    "load_inference_model",
    "load_params",
    "load_persistables",
    "load_program_state",
    "load_slice",
    "load_vars",
    "map_readers",
    "multiprocess_reader",
    "plan_load",
    "save",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_vars",
    "set_program_state",
    "shuffle",
    "verify",
    "xmap_readers",
]
