"""Scan folders of scripts and models, without running them, for unsupported features."""

from paddlelike.scan.report import FileFinding, Scan, ScriptFinding, ScriptVerdict
from paddlelike.scan.scan import scan

__all__ = ["FileFinding", "Scan", "ScriptFinding", "ScriptVerdict", "scan"]
