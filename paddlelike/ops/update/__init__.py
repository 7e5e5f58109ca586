"""Parameter updates of optimizers."""
