"""``fluid.incubate.fleet.parameter_server.version``: which fleet for parameter servers this is."""

__all__ = ["is_transpiler"]


def is_transpiler() -> bool:
    """Return True: fleet uses the transpiler."""
    return True
