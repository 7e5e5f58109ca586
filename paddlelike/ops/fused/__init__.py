"""Fused operators that Paddle's inference passes create; saved models may contain them."""
