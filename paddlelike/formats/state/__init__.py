"""State files: pickles of names to arrays, as ``fluid.save`` and ``paddle.save`` write them."""

from paddlelike.formats.state.format import StateContents, StateFile, decode, encode
from paddlelike.formats.state.pickled import PickledArray

__all__ = ["PickledArray", "StateContents", "StateFile", "decode", "encode"]
