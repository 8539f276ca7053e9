"""Mail becomes text in bounded time, whatever it is; what had to be cut or guessed is flagged."""

import base64
import inspect
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.errors import ModelTooLargeError
from priory.sources import ReadOptions, open_files
from priory.sources import mail as mail_module
from priory.sources.mail import read_mail, strip_html
from priory.sources.mail_structure import split_mbox


def nested(depth):
    inner = b"Content-Type: text/plain\n\ndeep\n"
    for level in range(depth):
        edge = b"b%d" % level
        inner = b"Content-Type: multipart/mixed; boundary=%s\n\n--%s\n" % (edge, edge) + inner + b"\n--%s--\n" % edge
    return inner


def many_parts(count):
    parts = b"".join(b"--x\nContent-Type: text/plain\n\npart%d\n" % i for i in range(count))
    return b"Subject: many\nContent-Type: multipart/mixed; boundary=x\n\n" + parts + b"--x--\n"


CASES = {
    "plain": (b"Subject: Hi\nFrom: a@b.c\n\nbody text", "Hi\na@b.c\n\nbody text", ()),
    "encoded words": (b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= =?latin-1?q?=E9?=\n\nx", "Grüßeé\n\nx", ()),
    "quoted-printable": (
        b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\ncaf=C3=A9",
        "café",
        (),
    ),
    "base64": (
        b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode("Hällo".encode()),
        "Hällo",
        (),
    ),
    "bad base64": (b"Content-Transfer-Encoding: base64\n\n!!!aGk", "hi", ("encoding", "defects")),
    "html": (b"Content-Type: text/html\n\n<b>c<!-- x -->lick</b> &amp; <style>p{}</style>win", "click & win", ()),
    "unknown charset": (b"Content-Type: text/plain; charset=unknown-8bit\n\ncaf\xe9", "café", ("charset",)),
    "not in its charset": (b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9", "café", ("charset",)),
    "zero width": (b"\ncl\xe2\x80\x8bick", "click", ("zw",)),
    "wide letters": ("\nＦＲＥＥ ﬁne".encode(), "FREE fine", ()),
    "no headers": (b"just some words\n\nand more", "just some words\n\nand more", ()),
    "only headers": (b"Subject: alone\n", "alone", ()),
    "binary": (b"\na\0b", "a b", ("binary",)),
    "empty": (b"", "", ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_as_text(name):
    raw, text, flags = CASES[name]
    found = read_mail(raw)
    assert found.text == text
    assert set(flags) <= set(found.flags)
    if not flags:
        assert not found.flags


def test_depth_parts_and_headers_are_capped():
    assert read_mail(nested(20)).text == "deep"
    assert read_mail(nested(40)).flags == ("mime_depth",)
    many = read_mail(many_parts(1200))
    assert many.flags[0] == "parts"
    assert "part900" in many.text
    assert "part1100" not in many.text
    headers = read_mail(b"Subject: kept\n" + b"".join(b"X-%d: y\n" % i for i in range(5000)) + b"\nbody")
    assert (headers.text, headers.flags) == ("kept\n\nbody", ("headers",))


@pytest.mark.parametrize(
    "raw",
    [
        b"To: " + b", ".join(b"a%d <a%d@b.c>" % (i, i) for i in range(10_000)) + b"\n\nx",
        b"Subject: " + b"=?utf-8?q?=C3?= " * 20_000 + b"\n\nx",
        b"Content-Type: text/html\n\n" + b"<!-- " * 100_000,
        b"Content-Type: text/html\n\n" + b"<script" * 100_000,
        b"Content-Type: text/html\n\n" + b"<" * 500_000,
        b"Content-Type: text/html\n\n" + b"&" * 500_000,
        b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n" * 100_000,
        b"Subject: " + b"(" * 100_000 + b"\n\nx",
    ],
    ids=lambda raw: raw[:30].decode(),
)
def test_hostile_messages_take_no_longer_than_honest_ones(raw):
    start = time.process_time()
    read_mail(raw)
    assert time.process_time() - start < 5 * (0.05 + len(raw) / 1e6)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_message(raw):
    found = read_mail(raw)
    found.text.encode()
    read_mail(b"Subject: " + raw)
    read_mail(b"Content-Type: text/html; charset=" + raw[:10].replace(b"\n", b"") + b"\n\n" + raw)
    strip_html(raw.decode("latin-1"))


MBOX = b"From a@b\nSubject: one\n\nbody\n>From here\nFrom in the middle\n\nFrom c@d\nSubject: two\n\nlast"


@given(st.integers(1, 100))
def test_an_mbox_is_split_at_from_lines_after_a_blank_one(size):
    blocks = [MBOX[i : i + size] for i in range(0, len(MBOX), size)]
    assert [read_mail(raw).text for raw in split_mbox(iter(blocks))] == [
        "one\n\nbody\nFrom here\nFrom in the middle",
        "two\n\nlast",
    ]


def rows(path, **asked):
    found = open_files([str(path)], ReadOptions(**asked))
    return [
        (row["label"], row["text"]) for chunk in found.read_chunks(("label", "text")) for row in chunk.batch.to_pylist()
    ]


def test_maildirs_mboxes_and_messages_by_class(tmp_path):
    for label, text in [("ham", "lunch"), ("spam", "win")]:
        for part in ("cur", "new", "tmp"):
            (tmp_path / "dirs" / label / part).mkdir(parents=True)
        (tmp_path / "dirs" / label / "cur" / "1").write_bytes(b"Subject: s\n\n" + text.encode())
    assert rows(tmp_path / "dirs") == [("ham", "s\n\nlunch"), ("spam", "s\n\nwin")]
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "spam.mbox").write_bytes(MBOX)
    assert [label for label, _ in rows(tmp_path / "boxes", format="mail")] == ["spam", "spam"]
    (tmp_path / "one.eml").write_bytes(b"Subject: s\n\nx")
    assert rows(tmp_path / "one.eml") == [("one", "s\n\nx")]


def test_a_tree_of_texts_by_class(tmp_path):
    for label in ("alt.atheism", "sci.med"):
        (tmp_path / label / "deeper").mkdir(parents=True)
        (tmp_path / label / "1").write_text(f"a text of {label}")
        (tmp_path / label / "deeper" / "2").write_text("")
    assert rows(tmp_path) == [
        ("alt.atheism", "a text of alt.atheism"),
        ("alt.atheism", ""),
        ("sci.med", "a text of sci.med"),
        ("sci.med", ""),
    ]


def test_a_document_of_many_blocks_is_read_whole_and_one_beyond_the_limit_is_not(tmp_path):
    for label, size in [("long", 20 << 20), ("longer", 26 << 20)]:
        (tmp_path / label / "a").mkdir(parents=True)
        (tmp_path / label / "a" / "1").write_text("x" * size)
    found = open_files([str(tmp_path)], ReadOptions()).read_chunks(("text",))
    assert len(next(found).batch.column("text")[0].as_py()) == 20 << 20
    with pytest.raises(ModelTooLargeError, match=r"longer/a/1: has .* bytes or more; the limit is 26,214,400"):
        next(found)


def test_a_message_longer_than_the_limit_is_cut(monkeypatch):
    monkeypatch.setattr(mail_module, "MAX_MAIL_BYTES", 100)
    assert read_mail(b"\n" + b"x" * 200).flags == ("cut",)


def test_a_tree_of_messages_is_read_as_mail(tmp_path):
    for name, text in (("ham", b"lunch at noon"), ("spam", b"win cash now")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").write_bytes(b"Received: from here\nSubject: =?utf-8?q?caf=C3=A9?=\n\n" + text)
    rows = open_files([str(tmp_path)], ReadOptions())
    texts = [text for chunk in rows.read_chunks(("text",)) for text in chunk.batch.column("text").to_pylist()]
    assert texts == ["café\n\nlunch at noon", "café\n\nwin cash now"]


def test_every_flag_has_a_sentence():
    assert set(re.findall(r'flags\["(\w+)"\]', inspect.getsource(mail_module))) == set(mail_module.MAIL_FLAG_MESSAGES)
