"""The command line: for a person at a terminal with a file, and for a script.

Whatever a command needs that takes long to import, it imports when it runs.
"""

from priory.cli.entry_point import main

__all__ = ["main"]
