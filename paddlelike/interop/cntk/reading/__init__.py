"""What each operation of CNTK is in a program; one module for each family."""
