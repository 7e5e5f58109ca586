"""Files of CNTK 2: models (model-v2) and checkpoints, which are nested dictionaries of values."""
