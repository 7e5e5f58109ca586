"""Savers that are killed, at every call of the system and at any time."""
