"""The backward pass: operators that compute gradients, appended behind the forward part."""

from paddlelike.backward.append import append_backward, calc_gradient, gradients

__all__ = ["append_backward", "calc_gradient", "gradients"]
