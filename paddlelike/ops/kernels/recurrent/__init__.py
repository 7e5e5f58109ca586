"""Kernels of recurrent networks: sequences by step, LSTM and GRU cells."""
