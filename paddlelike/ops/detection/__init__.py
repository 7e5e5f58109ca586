"""Operators of object detection: anchors, boxes, matching, suppression, proposals, regions, losses."""
