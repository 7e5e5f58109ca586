"""The backward pass: operators that compute gradients, appended behind the forward part."""

from paddlelike.backward.append import append_backward, gradients

__all__ = ["append_backward", "gradients"]
