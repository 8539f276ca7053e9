"""Files in: CSV, TSV, JSON lines, Parquet, Arrow, packed or not; globs and folders; texts by class; mail; ``-``.

`open_files` finds out what was named, and gives its rows a chunk at a time; `kinds` says what the columns are.
"""

from priory.sources.chunk import BadRowPolicy, FileReader, RowChunk
from priory.sources.discovery import FILE_FORMATS, FileRows, ReadOptions, open_files

__all__ = ["FILE_FORMATS", "BadRowPolicy", "FileReader", "FileRows", "ReadOptions", "RowChunk", "open_files"]
