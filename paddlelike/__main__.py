"""``python -m paddlelike COMMAND``, and the program ``paddlelike``."""

import sys

from paddlelike.errors import ImportPaddleError

_USAGE = "usage: python -m paddlelike run SCRIPT [args]\n       python -m paddlelike run -m MODULE [args]"
_MISSING = (
    "paddlelike: {} needs the extra 'cli': pip install 'paddlelike[cli]' (run and launch work without it)"
)
_HELP = """\
usage: paddlelike COMMAND [ARGS]

  run      Run an unmodified script that imports Paddle.
  launch   Run a job of trainers and parameter servers.

The other commands (inspect, doctor, verify, convert, view, ...) need the extra 'cli', which is
not installed: pip install 'paddlelike[cli]'"""


def main() -> int:
    """Run a command and return its exit status: 2 for an invalid command line."""
    name, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name == "run":  # without the extra, and without reading the options of the script
        return _run(arguments)
    if name == "launch":
        from paddlelike.distributed.launch.command import main as launch

        return launch(arguments, program="paddlelike launch")
    try:
        from paddlelike.cli.app import main as run_app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click", "shellingham"):
            raise
        if name in ("-h", "--help"):
            print(_HELP)  # noqa: T201
            return 0
        print(_MISSING.format(name or "the command line"), file=sys.stderr)  # noqa: T201
        return 2
    run_app()
    return 0


def _run(arguments: list[str]) -> int:
    from paddlelike.import_paddle.script import run_script

    if arguments[:1] in ([], ["-h"], ["--help"]):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    try:
        run_script(arguments)
    except ImportPaddleError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2


if __name__ == "__main__":
    sys.exit(main())
