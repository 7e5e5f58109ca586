"""The ``paddle`` that scripts import when this folder is on Python's path: paddlelike under that name."""

import sys
from pathlib import Path

try:
    import paddlelike
except ModuleNotFoundError as error:
    if error.name != "paddlelike":
        raise
    sys.path.append(str(Path(__file__).parents[4]))  # a copy of the sources that is not installed
    import paddlelike

del sys.modules["paddle"]
paddlelike.install()
