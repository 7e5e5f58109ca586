"""What classes of every floor stand on: notebooks, values of threads, the garbage collector."""
