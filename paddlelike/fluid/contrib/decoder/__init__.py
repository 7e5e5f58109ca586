"""``fluid.contrib.decoder``: the decoders of :mod:`paddlelike.fluid.contrib.decoder.beam_search_decoder`."""

from paddlelike.fluid.contrib.decoder import beam_search_decoder
from paddlelike.fluid.contrib.decoder.beam_search_decoder import (
    BeamSearchDecoder,
    InitState,
    StateCell,
    TrainingDecoder,
)

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder", "beam_search_decoder"]
