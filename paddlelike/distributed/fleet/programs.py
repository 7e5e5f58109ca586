"""``fluid.incubate.fleet.utils.utils``: programs in files."""

from __future__ import annotations

from pathlib import Path

from paddlelike.errors import UnsupportedError
from paddlelike.framework.graph.program import Program


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """Return the program in a file. Raises UnsupportedError for the text format, which has no parser."""
    if is_text:
        raise UnsupportedError(
            f"load_program: {model_filename}: programs in text cannot be read",
            hint="save the program with is_text=False",
        )
    return Program.parse_from_string(Path(model_filename).read_bytes())


def load_program_binary(path: str) -> Program:
    """Return the program in a file."""
    return load_program(path)


def load_program_text(path: str) -> Program:
    """Raise UnsupportedError: programs in text cannot be read."""
    return load_program(path, is_text=True)


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Write a program into a file, or its description as text."""
    if is_text:
        Path(model_filename).write_text(program.to_string(throw_on_error=False))
    else:
        Path(model_filename).write_bytes(program.desc.serialize_to_string())
