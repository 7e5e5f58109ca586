"""The parameter server: the served variables, staging, rounds, verbs, rollback, its part of a save."""
