"""Programs of Paddle 3 (PIR, as JSON: ``inference.json``): reading them into a ProgramDesc, and writing
them.
"""
