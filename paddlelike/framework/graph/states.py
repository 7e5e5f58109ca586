"""Pickled states of graph objects that were read from a file; they keep the original message."""

from __future__ import annotations

from typing import Any, Final

from paddlelike.core import Versioned
from paddlelike.hooks import Hook

_decode_message: Final[Hook[[str, bytes], Any]] = Hook("decode_message")


class EncodedState(Versioned):
    """Base class of objects with a message in ``encoded``; a pickle holds its name and bytes."""

    __slots__ = ()

    def _get_attributes(self) -> dict[str, Any]:
        attributes = super()._get_attributes()
        message = attributes.get("encoded")
        if message is not None:
            attributes["encoded"] = (message.DESCRIPTOR.name, message.SerializePartialToString())
        return attributes

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        if attributes.get("encoded") is not None:
            kind, data = attributes["encoded"]
            attributes = {**attributes, "encoded": _decode_message.function(kind, data)}
        super()._set_attributes(attributes)
