"""``python -m paddlelike run SCRIPT [args]``."""

import sys

from paddlelike.errors import StandInError
from paddlelike.standin.script import run_script

_USAGE = "usage: python -m paddlelike run SCRIPT [args]\n       python -m paddlelike run -m MODULE [args]"


def main() -> int:
    """Run the command and return its exit code: 2 for an invalid command line."""
    if len(sys.argv) < 2 or sys.argv[1] != "run":
        asked = sys.argv[1:] in (["-h"], ["--help"])
        print(_USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        run_script(sys.argv[2:])
    except StandInError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2


if __name__ == "__main__":
    sys.exit(main())
