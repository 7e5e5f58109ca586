"""Passes: Program -> Program, and networkx views of a program."""
