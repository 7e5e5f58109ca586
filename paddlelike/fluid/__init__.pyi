"""The names of ``paddlelike.fluid``, for type checkers and editors: those of ``paddlelike``."""

from paddlelike import *  # noqa: F403  (a stub re-exports every name)
