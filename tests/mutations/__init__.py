"""Plausible faults of the package, one at a time: do the tests find them? ``nox -s mutations`` tells."""
