"""A net over the operators: generated cases of odd shapes and values, and what real Fluid 1.8.5 computed."""
