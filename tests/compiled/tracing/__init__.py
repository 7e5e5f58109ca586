"""Tests of what happens while a program is traced."""
