"""Read files: CSV, TSV, JSON lines, Parquet, Arrow, compressed or not; patterns, folders, texts by class, mail.

`open_files` detects the formats and returns the rows a chunk at a time; `column_types` has the kinds of their columns.
"""

from priory.sources.byte_streams import ReadOptions
from priory.sources.cell_parsing import FileReader, RowChunk
from priory.sources.discovery import FileRows, open_files

__all__ = ["FileReader", "FileRows", "ReadOptions", "RowChunk", "open_files"]
