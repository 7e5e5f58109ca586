"""The inputs and outputs of a run: feeds, fetches, files, servers."""
