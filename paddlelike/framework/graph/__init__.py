"""The graph as plain data: variables, operators, blocks, programs."""
