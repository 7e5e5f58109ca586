"""``fluid.contrib``: what has a meaning for static programs on the CPU."""
