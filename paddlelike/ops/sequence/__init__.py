"""Operators on LoD sequences: rows of one array, cut into sequences by offsets."""
