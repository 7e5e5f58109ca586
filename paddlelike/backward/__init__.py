"""The backward pass: operators that compute gradients, appended after the forward part."""

from paddlelike.backward.append import append_backward, calc_gradient, gradients
from paddlelike.framework.opdef import grad_name as _append_grad_suffix_  # noqa: F401  (scripts call it)

__all__ = ["append_backward", "calc_gradient", "gradients"]
