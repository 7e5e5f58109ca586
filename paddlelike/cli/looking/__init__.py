"""Commands that read files without changing them."""
