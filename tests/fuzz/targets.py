"""All targets by name."""

from __future__ import annotations

from typing import Final

from tests.fuzz.calls import CALLS
from tests.fuzz.cntk import CNTK
from tests.fuzz.formats import FORMATS
from tests.fuzz.loaders import LOADERS
from tests.fuzz.makers.control_files import CONTROL_FILES
from tests.fuzz.markers import MARKERS
from tests.fuzz.models import MODELS
from tests.fuzz.readers import READERS
from tests.fuzz.trees import TREES

__all__ = ["TARGETS"]

_ALL: Final = (*READERS, *FORMATS, *LOADERS, *CONTROL_FILES, *MARKERS, *TREES, *CALLS, *CNTK, *MODELS)
TARGETS: Final = {target.name: target for target in _ALL}
