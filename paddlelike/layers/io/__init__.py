"""Inputs of a network: fed variables and readers."""
