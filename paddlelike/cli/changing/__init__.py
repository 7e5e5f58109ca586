"""Commands that write files in another form; their inputs stay unchanged."""
