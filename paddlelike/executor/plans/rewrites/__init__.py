"""What is done to the steps of a plan before they are bound."""
