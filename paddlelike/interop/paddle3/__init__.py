"""Programs of Paddle 3 (PIR, as JSON: ``inference.json``): read into a ProgramDesc, and written."""
