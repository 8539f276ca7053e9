"""Rows in every format, and how tests read them."""

import pyarrow as pa

from priory.sources import ReadOptions, open_files

ROWS = [("01", "Ünïcode, quoted", 1.5), ("1", 'a "word" of', -2.0), ("NA", "two\nlines", None)]


TABLE = pa.table(dict(zip(("label", "text", "x"), map(list, zip(*ROWS, strict=True)), strict=True)))


CSV = 'label,text,x\n01,"Ünïcode, quoted",1.5\n1,"a ""word"" of",-2.0\nNA,"two\nlines",\n'


JSON = (
    '{"label":"01","text":"Ünïcode, quoted","x":1.5}\n\n{"label":"1","text":"a \\"word\\" of","x":-2}\n'
    '{"label":"NA","text":"two\\nlines","x":null}'
)


def read(path, *wanted, **how):
    rows = open_files([str(path)], ReadOptions(**how))
    batches = [chunk.batch for chunk in rows.read_chunks(wanted or rows.names)]
    return pa.Table.from_batches(batches).to_pylist()


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return sink.getvalue().to_pybytes()


def as_rows(found):
    """Rows with their numbers read, whatever the file knew of types."""
    return [(row["label"], row["text"], float(row["x"]) if row["x"] not in ("", None) else None) for row in found]
