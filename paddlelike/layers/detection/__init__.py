"""Layers for object detection: anchors, boxes, matching, suppression, proposals, losses.

The layers are in the modules of this folder; this package lists the names of Fluid's
``layers.detection``.
"""
