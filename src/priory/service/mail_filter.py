"""Mail through the service: a message in, the same message with a header out, in a few milliseconds.

A mail server starts the filter for every message, so this module imports nothing that takes long, and speaks HTTP over
the Unix socket by itself.
"""

from __future__ import annotations

import json
import re
import socket
from binascii import b2a_base64
from collections.abc import Iterable
from typing import Any, NamedTuple

DEFAULT_HEADER = "X-Priory"
EXIT_OTHER_CLASS, EXIT_UNSURE, EXIT_TRY_AGAIN = 1, 2, 75  # 75: sysexits.h, "try again later"
MAX_EVIDENCE_IN_HEADER = 5
MAX_SHOWN_LENGTH = 40
MAX_ENCODED_BYTES = 45  # which are 60 characters in base 64; with what is around them an encoded word may have 75
SECONDS_TO_ANSWER = 20.0
OPTION_NAMES = ("socket", "header", "exit-code", "certainty", "token")


class Verdict(NamedTuple):
    """What a model says about a message; no label where it is not sure."""

    label: str | None
    probability: float
    evidence: tuple[tuple[str, float], ...]  # words and their decibans

    def format(self) -> str:
        """The value of the header: ASCII on one line; words beyond ASCII are encoded as mail does.

        >>> Verdict("spam", 0.99312, (("cash", 8.7), ("(together)", 3.1), ("zürich", -1.2))).format()
        'spam; probability=0.9931; evidence="cash +8.7, (together) +3.1, =?utf-8?b?esO8cmljaA==?= -1.2"'
        """
        words = ", ".join(f"{_encode_word(word)} {weight:+.1f}" for word, weight in self.evidence)
        label = "unsure" if self.label is None else _encode_word(self.label)
        # an encoded word has blanks around it, or mail programs show it as it is
        value = f'{label}; probability={self.probability:.4f}; evidence="{words}"'
        return value.replace("?=;", "?= ;").replace('"=?', '" =?')

    def find_exit_code(self, wanted: str | None) -> int:
        """0 if no class is asked for, or it is this one; else 1, or 2 where the model is not sure."""
        if wanted is None or self.label == wanted:
            return 0
        return EXIT_UNSURE if self.label is None else EXIT_OTHER_CLASS


def _encode_word(word: str) -> str:
    """The beginning of a word for a header: as it is, or as an encoded word (RFC 2047) if it could be misread there."""
    word = word[:MAX_SHOWN_LENGTH]
    if re.fullmatch(r"[ !#-+\--:<-\[\]-~]+", word) and "=?" not in word:
        return word
    start = word.encode("utf-8", "replace")[:MAX_ENCODED_BYTES].decode("utf-8", "ignore")
    return f"=?utf-8?b?{b2a_base64(start.encode(), newline=False).decode()}?="


def check_label(label: str, classes: Iterable[object]) -> None:
    """Raise an error for a label that is no class of the model: it is mistyped, or has to be asked for."""
    from priory.core.name_suggestions import suggest_name
    from priory.errors import DataError

    names = [str(known) for known in classes]
    if label not in names:
        hint = suggest_name(label, names)
        raise DataError(f"the model has no class {label!r}{hint}; with --new-class (new_class=1) it gets one")


def read_quick_options(arguments: list[str]) -> tuple[str, dict[str, str]] | None:
    """The model and the options of a command line; None if it asks for anything else, such as help.

    >>> read_quick_options(["mail", "--socket=/run/s", "--exit-code", "spam"])
    ('mail', {'socket': '/run/s', 'exit-code': 'spam'})
    >>> read_quick_options(["--help"])
    """
    options: dict[str, str] = {}
    models: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            models.append(argument)
            continue
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name not in OPTION_NAMES:
            return None
        options[name] = value if equals else next(rest, "")
    return (models[0], options) if len(models) == 1 else None


class ServiceConnection:
    """A connection to the Unix socket of a service."""

    def __init__(self, path: str, token: str | None = None) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SECONDS_TO_ANSWER)
        self._socket.connect(path)
        self._authorization = f"Authorization: Bearer {token}\r\n" if token else ""

    def post_mail(self, path: str, message: bytes, key: str | None = None) -> dict[str, Any]:
        """Send a message, and return what the service answers; an error (OSError) if it refuses."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/rfc822\r\n{self._authorization}"
        head += f"Idempotency-Key: {key}\r\n" if key else ""
        self._socket.sendall(f"{head}Content-Length: {len(message)}\r\n\r\n".encode("ascii") + message)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        headers, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?im)^content-length: *(\d+)", headers)[1])  # type: ignore[index]
        while len(body) < length:
            body += self._receive()
        answer: dict[str, Any] = json.loads(body)
        if headers[9:12] != b"200":
            raise OSError(str(answer.get("detail", "the service refused")))
        return answer

    def _receive(self) -> bytes:
        part = self._socket.recv(65536)
        if not part:
            raise OSError("the service closed the connection")
        return part

    def close(self) -> None:
        self._socket.close()


def find_model_name(model: str) -> str:
    """The name of a model in the service: that of its file, without folder and suffix."""
    return model.rpartition("/")[2].removesuffix(".priory")


def judge_by_service(connection: ServiceConnection, model: str, message: bytes, certainty: float) -> Verdict:
    """What the model of a running service says about a message."""
    path = f"/v1/models/{find_model_name(model)}"
    predicted = connection.post_mail(f"{path}/predict", message)["predictions"][0]
    explained = connection.post_mail(f"{path}/explain", message)["explanations"][0]
    return make_verdict(str(predicted["label"]), float(predicted["probability"]), explained, certainty)


def make_verdict(label: str, probability: float, explained: dict[str, Any], certainty: float) -> Verdict:
    lines = explained["evidence"][:MAX_EVIDENCE_IN_HEADER]
    evidence = tuple((str(line["name"]), float(line["decibans"])) for line in lines)
    return Verdict(label if probability >= certainty else None, probability, evidence)


def add_header(message: bytes, name: str, value: str) -> bytes:
    """The message with one header more; those of the same name that it came with are removed, as they may be forged.

    >>> add_header(b"x-priory: ham;\\n lies\\nSubject: hi\\n\\nx-priory: body\\n", "X-Priory", "spam")
    b'X-Priory: spam\\nSubject: hi\\n\\nx-priory: body\\n'
    """
    end_of_line = b"\r\n" if b"\r\n" in message[:1000] else b"\n"
    parts = re.split(rb"(\r?\n\r?\n)", message, maxsplit=1)
    own = re.compile(rb"(?im)^" + re.escape(name.encode()) + rb":.*(?:\r?\n[ \t].*)*(?:\r?\n|\Z)")
    if re.match(rb"\r?\n", message):  # no headers at all
        parts = [b"", message]
    elif len(parts) > 1:
        parts[0] += end_of_line
        parts[1] = end_of_line
    head = own.sub(b"", parts[0])
    envelope, head = re.fullmatch(rb"(?s)((?:>?From .*?\n)?)(.*)", head).groups()  # type: ignore[union-attr]
    return envelope + f"{name}: {value}".encode() + end_of_line + head + b"".join(parts[1:])
