"""Directories behind URLs: stores by scheme, and saves committed by markers."""
