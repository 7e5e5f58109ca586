"""Lowerings of the operators of detectors: pools over regions, deformed convolutions, boxes, losses."""
