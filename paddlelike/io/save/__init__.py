"""Saving: selected variables -> one storage transaction."""
