"""Operators of Paddle 2.x that Fluid 1.8 does not have, or that compute something else there.

They run models that Paddle 2.x saved for prediction. They have no shape rules and no gradients; their values
are compared with those of real Paddle 2.6.2 (``tests/models/``).
"""
