"""The lowerings, one file per family of operators; imported when a program is first run with JAX."""
