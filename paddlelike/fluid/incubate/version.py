"""``fluid.incubate.fleet.parameter_server.version``: the kind of fleet for parameter servers."""

__all__ = ["is_transpiler"]


def is_transpiler() -> bool:
    """Return True: fleet uses the transpiler."""
    return True
