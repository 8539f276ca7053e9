"""The command line: options in, a workflow called, output out.

Slow imports are left to the commands that need them.
"""

from priory.cli.entry_point import main

__all__ = ["main"]
