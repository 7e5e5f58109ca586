"""Tests of what stays on the device between runs."""
