"""Convolutions of images and volumes, and their two gradients."""
