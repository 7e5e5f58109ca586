"""Programs as XLA computations, through JAX: an executor's other engine.

JAX is imported when a program first runs with it (:func:`paddlelike.compiled.backend.load_jax`).
"""
