"""Values: element types, places, tensors, scopes, random numbers."""
