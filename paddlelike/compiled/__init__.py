"""Programs as XLA computations, through JAX: an executor's other engine.

Nothing here imports JAX before a program is run with it; :func:`paddlelike.compiled.backend.load_jax` does.
"""
