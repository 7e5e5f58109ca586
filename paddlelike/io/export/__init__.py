"""Inference models."""
