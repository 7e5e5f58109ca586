"""The names of ``fluid.io``, and where each is defined."""

from paddlelike.io.asynchronous import PendingSave as PendingSave
from paddlelike.io.calls import (
    _clone_var_in_block_ as _clone_var_in_block_,
    get_program_parameter as get_program_parameter,
    get_program_persistable_vars as get_program_persistable_vars,
    is_belong_to_optimizer as is_belong_to_optimizer,
    is_parameter as is_parameter,
    is_persistable as is_persistable,
)
from paddlelike.io.checkpoints.checkpoint import Checkpoint as Checkpoint
from paddlelike.io.checkpoints.checkpoints import Checkpoints as Checkpoints
from paddlelike.io.export.load import load_inference_model as load_inference_model
from paddlelike.io.export.save import save_inference_model as save_inference_model
from paddlelike.io.load.load import (
    load_params as load_params,
    load_persistables as load_persistables,
    load_vars as load_vars,
)
from paddlelike.io.load.preview import fit_state as fit_state, plan_load as plan_load
from paddlelike.io.load.slices import load_slice as load_slice
from paddlelike.io.planning.load_plan import LoadPlan as LoadPlan
from paddlelike.io.report import LoadReport as LoadReport, SaveReport as SaveReport
from paddlelike.io.rules.rule import Init as Init, Rename as Rename, Skip as Skip
from paddlelike.io.rules.rules import Rules as Rules
from paddlelike.io.save.compact import compact as compact
from paddlelike.io.save.save import (
    save_params as save_params,
    save_persistables as save_persistables,
    save_vars as save_vars,
)
from paddlelike.io.state import (
    load as load,
    load_program_state as load_program_state,
    save as save,
    set_program_state as set_program_state,
)
from paddlelike.io.training_log import TrainingLog as TrainingLog
from paddlelike.io.verify import Verification as Verification, verify as verify
from paddlelike.reader import (
    ComposeNotAligned as ComposeNotAligned,
    DataLoader as DataLoader,
    PyReader as PyReader,
    batch as batch,
    buffered as buffered,
    cache as cache,
    chain as chain,
    compose as compose,
    firstn as firstn,
    map_readers as map_readers,
    multiprocess_reader as multiprocess_reader,
    shuffle as shuffle,
    xmap_readers as xmap_readers,
)
