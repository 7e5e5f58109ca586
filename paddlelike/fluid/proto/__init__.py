"""``fluid.proto``: the messages of saved programs."""
