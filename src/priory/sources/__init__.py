"""Files in: CSV, TSV, JSON lines, Parquet, Arrow, packed or not; globs and folders; texts by class; mail; ``-``.

`open_files` finds out what was named, and gives its rows a chunk at a time; `kinds` says what the columns are.
"""

from priory.sources.chunk import Chunk, Faults, File
from priory.sources.discovery import FORMATS, Asked, Rows, open_files

__all__ = ["FORMATS", "Asked", "Chunk", "Faults", "File", "Rows", "open_files"]
