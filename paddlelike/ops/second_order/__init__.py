"""Gradients of gradient operators, for those of which Fluid 1.8 has one (``relu_grad_grad`` and its like)."""
