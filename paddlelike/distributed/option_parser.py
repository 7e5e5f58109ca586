"""An argument parser whose errors name the option that was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, NoReturn

from paddlelike.foundation.near_names import find_near_names

_UNKNOWN = "unrecognized arguments: "
_MISSING = "the following arguments are required: "


class Parser(argparse.ArgumentParser):
    """An ArgumentParser with full names only, which explains unknown options and missing arguments.

    Parameters
    ----------
    refused
        The reason against each option of other launchers, by option.
    missing
        The message for each missing required argument, by argument.
    **options
        The options of ArgumentParser.
    """

    def __init__(
        self,
        *,
        refused: Mapping[str, str] | None = None,
        missing: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(allow_abbrev=False, **options)
        self._refused = dict(refused or {})
        self._missing = dict(missing or {})

    def error(self, message: str) -> NoReturn:
        """Write the usage and an explained message to standard error and exit with code 2."""
        if message.startswith(_UNKNOWN):
            message = self._explain_unknown(message.removeprefix(_UNKNOWN).split())
        elif message.startswith(_MISSING):
            names = message.removeprefix(_MISSING).split(", ")
            message = next((self._missing[name] for name in names if name in self._missing), message)
        super().error(message)

    def _explain_unknown(self, arguments: list[str]) -> str:
        unknown = [argument.partition("=")[0] for argument in arguments]
        for option in unknown:
            if option in self._refused:
                return f"{option} {self._refused[option]}"
        meant = [
            f"did you mean {near} instead of {option}?" for option in unknown if (near := self._near(option))
        ]
        return "; ".join([_UNKNOWN + " ".join(arguments), *meant])

    def _near(self, option: str) -> str | None:
        """Return the option of this parser that is spelled most like ``option``."""
        known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        spelled = "--" + option.lstrip("-").replace("-", "_").lower()
        found = find_near_names(spelled, known, count=1)
        return found[0] if found and option.startswith("-") else None
