"""Layers for object detection: anchors, boxes, matching, suppression, proposals, losses.

The layers are in the modules of this folder; the names that this package lists are those of Fluid's
``layers.detection``.
"""
