"""Passes (Program -> Program) and analyses of the data flow of a program."""
