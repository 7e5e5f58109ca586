"""What goes into a run and comes out of it: feeds, fetches, files, servers."""
