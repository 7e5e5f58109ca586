"""Matrix products, norms and distances."""
