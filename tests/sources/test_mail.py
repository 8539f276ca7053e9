"""Mail becomes text in bounded time, whatever it is; what had to be cut or guessed is flagged."""

import base64
import gzip
import inspect
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hostile_mail
import priory
from priory import workflows
from priory.errors import DataError, ModelTooLargeError
from priory.sources import ReadOptions, open_files
from priory.sources.document_files import DocumentReader
from priory.text import mail as mail_module
from priory.text import mail_decoding, mail_structure
from priory.text.mail_html import strip_html
from priory.text.mail_structure import split_mbox


def read_mail(raw):
    """The message as plain text: what the other readers begin with."""
    return mail_module.read_mail(raw, "text")


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
    found = open_files([str(path)], ReadOptions(**{"reader": "text"} | asked))
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
    monkeypatch.setattr(mail_decoding, "MAX_MAIL_BYTES", 100)
    assert len(read_mail(b"\n" + "\ufdfa".encode() * 30).text) == 100  # one letter that NFKC makes eighteen
    assert read_mail(b"\n" + b"x" * 200).flags == ("cut",)


def test_a_tree_of_messages_is_read_as_mail(tmp_path):
    for name, text in (("ham", b"lunch at noon"), ("spam", b"win cash now")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").write_bytes(b"Received: from here\nSubject: =?utf-8?q?caf=C3=A9?=\n\n" + text)
    rows = open_files([str(tmp_path)], ReadOptions(reader="text"))
    texts = [text for chunk in rows.read_chunks(("text",)) for text in chunk.batch.column("text").to_pylist()]
    assert texts == ["café\n\nlunch at noon", "café\n\nwin cash now"]


def test_every_flag_has_a_sentence():
    source = "".join(map(inspect.getsource, (mail_module, mail_structure, mail_decoding)))
    assert set(re.findall(r'flags\["(\w+)"\]', source)) == set(mail_module.MAIL_FLAG_MESSAGES)


# Bad mail, and what the user gets.


def test_invalid_utf8_is_replaced_and_counted(tmp_path):
    text = "Grüße, Übermut, Öl: caf".encode() + b"\xe9"
    assert read_mail(b"\n" + text) == ("Grüße, Übermut, Öl: café", ("charset",))
    (tmp_path / "a.mbox").write_bytes(b"From a\n\n" + text + b"\n\nFrom a\n\nfine\n\nFrom b\n\n\xff")
    found = open_files([str(tmp_path / "a.mbox")], ReadOptions())
    assert sum(chunk.batch.num_rows for chunk in found.read_chunks(("text",))) == 3
    assert found.files[0].flags == {"charset": 2}


def test_text_in_another_charset_than_utf8_is_not_read_half_as_utf8():
    raw = "電子報".encode("big5") * 50
    assert read_mail(b"\n" + raw).text == unicodedata.normalize("NFKC", raw.decode("latin-1")).replace("\xad", "")


def test_nul_bytes_separate_words_in_body_and_headers():
    assert read_mail(b"\none\0two") == ("one two", ("binary",))
    assert read_mail(b"Subject: one\0two\n\nx") == ("one two\n\nx", ("binary",))


def texts_at_each_level(depth):
    """Multiparts in multiparts, each of which holds a text and the next."""
    inner = b"Content-Type: text/plain\n\ninnermost"
    for level in reversed(range(depth)):
        inner = (
            b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n\nlevel%d\n--b%d\n" % (level, level, level, level)
            + inner
            + b"\n--b%d--" % level
        )
    return inner


@pytest.mark.parametrize("depth", [31, 100, 1000])
def test_parts_are_read_to_a_depth_of_30(depth):
    within = read_mail(texts_at_each_level(30))
    assert within.text.split() == [*(f"level{i}" for i in range(30)), "innermost"]
    assert within.flags == ()
    assert read_mail(texts_at_each_level(depth)) == ("\n".join(f"level{i}" for i in range(30)), ("mime_depth",))


@pytest.mark.parametrize("depth", [31, 1000])
def test_messages_in_messages_are_read_to_a_depth_of_30(depth):
    assert read_mail(b"Content-Type: message/rfc822\n\n" * 30 + b"Subject: s\n\nx") == ("x", ())
    assert read_mail(b"Content-Type: message/rfc822\n\n" * depth + b"Subject: s\n\nx") == ("", ("mime_depth",))


def test_the_first_1000_parts_are_read():
    found = read_mail(many_parts(1200))
    assert found.flags == ("parts",)
    assert found.text.split() == ["many", *(f"part{i}" for i in range(999))]  # the message itself is a part
    assert read_mail(many_parts(999)).flags == ()


def test_headers_beyond_1000_or_256_kb_are_left_out_and_the_body_is_read():
    many = b"".join(b"X-%d: y\n" % i for i in range(1000))
    assert read_mail(many + b"Subject: late\n\nbody") == ("body", ("headers",))
    long = b"X: " + b"y" * (256 << 10) + b"\n"
    assert read_mail(b"Subject: early\n" + long + b"To: late\n\nbody") == ("early\n\nbody", ("headers",))
    assert read_mail(many[:-100] + b"Subject: in time\n\nbody").flags == ()


@pytest.mark.parametrize("name", [b"To", b"Subject"])
@pytest.mark.parametrize("unit", [b"a <a@b.c>, ", b"=?utf-8?q?=C3=A9?= ", b"=?a?q?", b"word\n "])
def test_a_huge_header_is_cut(name, unit):
    raw = name + b": start " + unit * (200_000 // len(unit)) + b"\n\nbody"
    found = read_mail(raw)
    assert found.text.startswith("start ")
    assert found.text.endswith("\n\nbody")
    assert len(found.text) <= 4096 + 20
    assert "headers" in found.flags


@pytest.mark.parametrize(
    "charset", ["x-unknown", "punycode", "idna", "unicode_escape", "hex", "\x01", "../../x", "a" * 9000]
)
def test_a_charset_that_is_not_allowed_is_read_as_latin_1(charset):
    raw = b"Content-Type: text/plain; charset=" + charset.encode() + b"\n\ncaf\xe9 \\u0041"
    assert read_mail(raw).text == "café \\u0041"
    assert "charset" in read_mail(raw).flags
    word = b"Subject: =?" + charset[:70].encode() + b"?q?caf=E9?=\n\nx"
    assert read_mail(word).text == "café\n\nx"


@pytest.mark.parametrize(
    ("charset", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("utf8", "utf-8"),
        ("ISO-8859-15", "iso-8859-15"),
        ("windows-1252", "cp1252"),
        ("KOI8-R", "koi8-r"),
        ("GB2312", "gb2312"),
        ("Big5", "big5"),
        ("ISO-2022-JP", "iso-2022-jp"),
        ("Shift_JIS", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-16", "utf-16"),
    ],
)
def test_the_charsets_of_real_mail_are_read(charset, codec):
    text = next(t for t in ("naïve", "Привет", "中文", "日本", "한국") if t.encode(codec, "ignore").decode(codec) == t)
    encoded = base64.encodebytes(text.encode(codec))
    head = f"Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset={charset}\n\n"
    assert read_mail(head.encode() + encoded) == (text, ())
    word = f"Subject: =?{charset}?B?".encode() + encoded.strip() + b"?=\n\nx"
    assert read_mail(word) == (text + "\n\nx", ())


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        ("base64", b"aGVs\n*&^bG8=", "hello"),
        ("base64", b"aGVsbG8", "hello"),
        ("base64", b"aGVsbG8hx", "hello!"),
        ("base64", b"aGVsbG8=\nA footer of the list", "hello"),
        ("quoted-printable", b"50=ZZ off =C3=A9 =", "50=ZZ off é"),
        ("x-unknown", b"as it is", "as it is"),
    ],
)
def test_what_can_be_decoded_of_a_bad_transfer_encoding_is_read(encoding, body, text):
    found = read_mail(b"Content-Transfer-Encoding: " + encoding.encode() + b"\n\n" + body)
    assert found.text == text
    assert "encoding" in found.flags


def test_a_message_without_headers_without_a_body_and_of_binary_data():
    assert read_mail(b"no headers at all") == ("no headers at all", ())
    assert read_mail(b"Subject: no body\n\n") == ("no body", ())
    assert "binary" in read_mail(bytes(range(256)) * 10).flags


def test_an_mbox_unquotes_from_lines_and_splits_only_after_a_blank_line():
    quoted = (
        b"From a\nSubject: s\n\n>From x\n>>From y\nFrom z\n > From w\n \t\r\nFrom b\r\n\r\nsecond\r\n\r\nFrom c\n\n"
    )
    assert [read_mail(raw).text for raw in split_mbox(iter([quoted]))] == [
        "s\n\nFrom x\n>From y\nFrom z\n > From w",
        "second",
        "",
    ]


def test_an_mbox_and_a_message_are_read_from_gzip_in_many_members(tmp_path):
    (tmp_path / "a.mbox.gz").write_bytes(b"".join(gzip.compress(MBOX[i : i + 5]) for i in range(0, len(MBOX), 5)))
    assert [text for _, text in rows(tmp_path / "a.mbox.gz")] == [
        "one\n\nbody\nFrom here\nFrom in the middle",
        "two\n\nlast",
    ]
    words = [b"word%d " % i for i in range(100)]
    (tmp_path / "b.eml.gz").write_bytes(gzip.compress(b"Subject: s\n\n") + b"".join(map(gzip.compress, words)))
    assert rows(tmp_path / "b.eml.gz")[0][1] == "s\n\n" + b"".join(words).decode().strip()


def test_an_empty_message_in_a_folder_is_an_empty_text(tmp_path):
    for part in ("cur", "new", "tmp"):
        (tmp_path / part).mkdir()
    (tmp_path / "cur" / "1").write_bytes(b"")
    (tmp_path / "cur" / "2").write_bytes(b"Subject: s\n\nx")
    assert [text for _, text in rows(tmp_path)] == ["", "s\n\nx"]


def test_a_message_that_may_not_be_read_is_named_and_left_out_only_if_asked(tmp_path, monkeypatch):
    for part in ("cur", "new", "tmp"):
        (tmp_path / part).mkdir()
    for name in "123":
        (tmp_path / "cur" / name).write_bytes(b"\nmessage " + name.encode())
    read = DocumentReader._read_texts

    def forbid(self, file):
        if file.name == "2":
            raise PermissionError(13, "Permission denied", str(file))
        return read(self, file)

    monkeypatch.setattr(DocumentReader, "_read_texts", forbid)
    with pytest.raises(PermissionError, match="cur/2"):
        rows(tmp_path)
    found = open_files([str(tmp_path)], ReadOptions(keep_going=True, reader="text"))
    texts = [text for chunk in found.read_chunks(("text",)) for text in chunk.batch.column("text").to_pylist()]
    assert texts == ["message 1", "message 3"]
    assert found.files[0].unreadable == [str(tmp_path / "cur" / "2")]


@pytest.mark.parametrize(
    ("markup", "text", "flags"),
    [
        ("<html><head><title>t</title></head><p>Buy</p><p>now</p>", "Buy now", ()),
        ("V<!-- x -->ia<!---->gra", "Viagra", ()),
        ("V\u200bi&zwnj;a\ufeffgra", "Viagra", ("zw",)),
        ("\uff36\U0001d422\u24d0gra", "Viagra", ()),  # wide, mathematical and circled letters
        ("\u202eargaiV\u202c \u2067x\u2069 \u061cy", "argaiV x y", ("zw",)),
    ],
)
def test_html_is_read_as_it_looks(markup, text, flags):
    found = read_mail(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
    assert (" ".join(found.text.split()), found.flags) == (text, flags)


# Work is bounded by the bytes; benchmarks/hostile_mail.py measures the time.


@pytest.mark.parametrize("variant", hostile_mail.VARIANTS)
@pytest.mark.parametrize("name", hostile_mail.ATTACKS)
def test_the_text_of_a_hostile_mail_is_not_much_longer_than_the_mail(name, variant, tmp_path):
    raw = hostile_mail.ATTACKS[name](100_000, variant)
    (tmp_path / "hostile.eml").write_bytes(raw)
    found = open_files([str(tmp_path / "hostile.eml")], ReadOptions()).read_chunks(("text",))
    assert sum(len(text.as_py()) for chunk in found for text in chunk.batch.column("text")) <= 40 * len(raw)


# What filters read: words with a prefix that says where they stood.


def prefixed(raw, prefix, reader="mail"):
    words = mail_module.read_mail(raw, reader).text.split()
    return [word.removeprefix(f"{prefix}:") for word in words if word.startswith(f"{prefix}:")]


def test_words_of_headers_have_a_prefix_and_those_that_name_the_mailbox_are_left_out():
    raw = b"Received: from bad.example (1.2.3.4)\nX-Mailer: Bulk 3\nSubject: Free!\nList-Id: a\nX-Priory: spam\n\nhi"
    assert prefixed(raw, "received") == []
    assert prefixed(raw, "xmailer") == ["Bulk", "3"]
    text = mail_module.read_mail(raw).text
    assert text.startswith("[=]\nFree!\n\nhi\n\n")
    assert "listid" not in text
    assert "xpriory" not in text
    assert mail_module.read_mail(raw, "mail_body").text == "[-]\nFree!\n\nhi\n\ncapital:Free"


def test_words_with_capitals_are_listed_once_in_capitals_and_with_one():
    raw = b"Subject: FREE Prize\n\nClaim your FREE prize: I am iPhone 15 \xc3\x84PFEL"
    assert prefixed(raw, "caps") == ["FREE", "ÄPFEL"]
    assert prefixed(raw, "capital") == ["Prize", "Claim", "I", "iPhone"]


def test_a_colon_stands_only_inside_of_prefixed_words():
    text = mail_module.read_mail("\nhidden:free subject：now http://x".encode()).text
    assert text == "[=]\nhidden free subject now http //x\n\nurl:x"


@pytest.mark.parametrize(
    "style",
    [
        "style='display: none'",
        'style="x:y;visibility:hidden"',
        "style=font-size:0",
        "style='font-size:1px'",
        "style='color:#FFFFFF'",
        "hidden",
    ],
)
def test_text_that_is_not_shown_is_hidden(style):
    raw = b"Content-Type: text/html\n\nbuy<div " + style.encode() + b">at <b>noon</b><div>x</div></div> now"
    assert prefixed(raw, "hidden") == ["at", "noon", "x"]
    assert read_mail(raw).text.split() == ["buy", "now"]


def test_white_text_on_a_coloured_ground_and_text_in_relative_sizes_are_shown():
    for markup in ("<td bgcolor=navy><font color=white>shown</font>", "<p style='font-size:0.9em'>shown</p>"):
        assert read_mail(b"Content-Type: text/html\n\n" + markup.encode()).text == "shown"


def test_an_invisible_piece_inside_of_a_word_does_not_split_it():
    markup = b"V<span style='display:none'>x</span>iagra"
    assert read_mail(b"Content-Type: text/html\n\n" + markup).text == "Viagra"


def test_hosts_names_of_tags_and_attachments_are_words():
    body = b"--x\nContent-Type: text/html\n\n<form action='http://Evil.example.com:8/p'><p onload=x>go</p></form>\n"
    attached = b"--x\nContent-Type: application/zip; name=price-list.zip\n\nx\n--x--"
    raw = MIXED + b"x\n\n" + body + attached
    assert prefixed(raw, "url") == ["evil:example:com", "example:com"]
    assert prefixed(raw, "html") == ["form", "action", "onload"]
    assert prefixed(raw, "part") == ["text", "html", "application", "zip"]
    assert prefixed(raw, "file") == ["price", "list", "zip"]
    assert prefixed("\nV\u200biagra".encode(), "flag") == ["zw"]


def test_the_library_reads_messages_and_the_model_remembers_how(tmp_path):
    spam, ham = b"X-Mailer: bulk\nSubject: cash\n\nwin", b"X-Mailer: mutt\nSubject: lunch\n\nnoon"
    model = priory.TextClassifier(reader="mail", calibrate=False).fit([spam, ham], ["spam", "ham"])
    assert "xmailer:bulk" in model.vocabulary_
    read = mail_module.read_mail(spam).text
    assert np.array_equal(model.predict_proba([spam]), model.predict_proba([spam.decode()]))
    assert np.array_equal(model.predict_proba([spam]), model.predict_proba([read]))
    assert list(model.predict_proba_one(spam).values()) == pytest.approx(model.predict_proba([spam])[0])
    with pytest.raises(DataError, match="document 0 was read by the reader 'mail_body', and the model reads by 'mail'"):
        model.predict([mail_module.read_mail(spam, "mail_body").text])
    plain = priory.TextClassifier(calibrate=False).fit(["cash", "lunch"], ["spam", "ham"])
    with pytest.raises(DataError, match="reader"):
        model + plain
    priory.save(model, tmp_path / "m.priory")
    assert priory.load(tmp_path / "m.priory").reader == "mail"
    with pytest.raises(DataError, match="reader is 'post'"):
        priory.TextClassifier(reader="post").fit(["a"], ["b"])


def test_files_of_mail_are_read_alike_by_train_predict_and_learn(tmp_path):
    for label, word in (("ham", "mutt"), ("spam", "bulk")):
        (tmp_path / "in" / label).mkdir(parents=True)
        for i in range(3):
            raw = f"Message-ID: <{i}@x>\nX-Mailer: {word}\nSubject: s{i}\n\ncaf".encode() + b"\xe9"
            (tmp_path / "in" / label / str(i)).write_bytes(raw)
    model = workflows.train(tmp_path / "in", options=workflows.TrainingOptions(plain=True)).model
    assert model.reader == "mail"
    assert "xmailer:bulk" in model.vocabulary_
    assert workflows.predict(model, tmp_path / "in" / "spam").to_table()["label"].to_pylist() == ["spam"] * 3
    body = workflows.train(
        tmp_path / "in", read=ReadOptions(reader="mail_body"), options=workflows.TrainingOptions(plain=True)
    ).model
    assert "xmailer:bulk" not in body.vocabulary_


def test_texts_that_look_like_mail_get_no_advice_to_read_them_as_latin_1(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_bytes(b"From: x@y\nSubject: z\n\ncaf\xe9")
    with pytest.raises(DataError, match="byte 25 is not UTF-8; use --format mail"):
        rows(tmp_path)


def test_every_character_that_sorts_as_a_combining_mark_is_limited():
    """Sorting them takes the square of their number."""
    marks = [c for c in map(chr, range(0xD800)) if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])]
    marks += [
        c for c in map(chr, range(0xE000, 0x110000)) if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])
    ]
    assert len(marks) > 900
    for mark in marks:
        found = read_mail(("\na" + mark * 40 + "b").encode())
        assert found.flags == ("marks",), hex(ord(mark))
        assert len(found.text) < 40 * len(unicodedata.normalize("NFKD", mark))
    assert read_mail(("\na" + "\u0301\u0323" * 15).encode()).flags == ()


def test_numbers_of_characters_may_have_any_number_of_digits():
    assert strip_html("&#65;&#x42;&#0000067;") == "ABC"
    assert strip_html("a&#" + "9" * 5000 + ";b&#x" + "f" * 5000 + "c") == "a\ufffdb\ufffd"  # c is a digit as well


# The structure of a message.

MIXED = b"Content-Type: multipart/mixed; boundary="


@pytest.mark.parametrize(
    ("raw", "text", "flags"),
    [
        (MIXED + b"x\n\npreamble\n--x\n\none\n--x  \n\ntwo\n--x--\nepilogue", "one\ntwo", ()),
        (MIXED + b'"a b:c"\n\n--a b:c\n\none\n--a b:c--', "one", ()),
        (MIXED + b"x\r\n\r\n--x\r\n\r\none\r\n--x--\r\n", "one", ()),
        (MIXED + b"x\n\n--x\n\nunclosed", "unclosed", ("defects",)),
        (MIXED + b"x\n\nno delimiter", "no delimiter", ("defects",)),
        (b"Content-Type: multipart/mixed\n\nno boundary", "no boundary", ("defects",)),
        (MIXED + b"x\n\n--x\n" + MIXED + b"x\n\n--x\n\nthe outer one's\n--x--", "the outer one's", ("defects",)),
        (MIXED + b"x\n\n--x\n" + MIXED + b"x--\n\n--x--\n\nafter", "", ("defects",)),
        (MIXED + b"a\n\n--a\n" + MIXED + b"b\n\n--b\n\none\n--a\n\ntwo\n--a--", "one\ntwo", ()),
        (MIXED + b"x:\n\n--x:\nA: b\n--x:\n\ntwo\n--x:--", "two", ()),
        (b"Content-Type: multipart/digest; boundary=x\n\n--x\n\nSubject: s\n\none\n--x--", "one", ()),
        (MIXED + b"x\n\n--x\nContent-Type: image/png; name=cat.png\n\ndata\n--x--", "cat.png", ()),
        (MIXED + b"x\n\n--x\nContent-Type: image/png\n\ndata\n--x--", "", ()),
        (b"Content-Type: image/png; name*0*=utf-8''na%C3%AF; name*1=ve.png\n\ndata", "naïve.png", ()),
        (b'Content-Type: a/b\nContent-Disposition: attachment; filename="=?utf-8?q?=C3=A9?="\n\n', "é", ()),
        (b"From a@b\nSubject: s\n\nx", "s\n\nx", ()),
        (b"Subject: a\n folded\n\tline\n\nx", "a folded line\n\nx", ()),
        (b"Subject: s\nno empty line", "s\n\nno empty line", ("defects",)),
        (b"Subject: =?utf-8?b?w6?= =?utf-8?b?k=?=\n\nx", "Ã\n\nx", ("encoding", "defects", "charset")),
        (b"Subject: =?utf-8?q?=C3?=\n =?UTF-8?q?=A9_?= and =?x\n\nx", "é and =?x\n\nx", ()),
    ],
)
def test_the_structure_of_a_message(raw, text, flags):
    assert read_mail(raw) == (text, flags)


@given(
    st.lists(
        st.sampled_from([b"--x\n", b"--y\n", b"--x--\n", MIXED + b"y\n\n", b"A: b\n", b"\n", b"text\n"]), max_size=40
    )
)
def test_no_order_of_boundaries_and_headers_is_an_error(lines):
    text, _ = read_mail(MIXED + b"x\n\n" + b"".join(lines))
    assert "--x" not in text.splitlines()
