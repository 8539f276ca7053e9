"""The command line, one module for each command: options in, a workflow called, output out.

What takes long to import is imported by the commands that need it, when they run.
"""

from priory.cli.entry_point import main

__all__ = ["main"]
