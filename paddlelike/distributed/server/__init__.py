"""The parameter server: what it serves, staging, rounds, verbs, rollback, its part of a save."""
