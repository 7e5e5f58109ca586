"""Images and volumes: memory layouts of their channels, windows, pools, statistics of channels."""
