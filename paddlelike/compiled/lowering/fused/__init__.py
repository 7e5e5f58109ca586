"""Lowerings of the operators that inference passes of Paddle make of several others."""
