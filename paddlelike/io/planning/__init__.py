"""The plan of a load: every variable compared with the headers of a source, by the rules."""
