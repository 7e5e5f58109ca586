"""``fluid.incubate.fleet.parameter_server.version``: which fleet for parameter servers this is."""

__all__ = ["is_transpiler"]


def is_transpiler() -> bool:
    """Return True: the fleet is the one on the transpiler."""
    return True
