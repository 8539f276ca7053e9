"""The command line: for a person at a terminal with a file, and for a script.

Whatever a command needs that takes long to import, it imports when it runs.
"""

from priory.cli.run import main

__all__ = ["main"]
