"""Operators of ``fluid.contrib``: for click-through rates, trees of items, and fused steps."""
