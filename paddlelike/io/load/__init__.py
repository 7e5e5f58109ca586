"""Loading: contents -> plan -> values -> commit to the scope."""
