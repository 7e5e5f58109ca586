"""Gradients of gradient operators, where Fluid 1.8 has one (``relu_grad_grad`` and others)."""
