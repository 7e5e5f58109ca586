"""What each operator of a program is in CNTK; one module for each family."""
