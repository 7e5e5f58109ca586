"""Commands that write files in another form, and leave those they read."""
