"""Images and volumes: where their channels lie in memory, windows, pools, statistics of channels."""
