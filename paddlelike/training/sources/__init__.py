"""Minibatch sources: data whose position can be saved and restored."""
