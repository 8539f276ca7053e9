"""Mail filter: reads a message and writes it with a header, by asking a running service.

A mail server starts the filter for every message, so this module avoids slow imports, and has its own minimal HTTP
client for the Unix socket.
"""

from __future__ import annotations

import json
import re
import sys
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from priory.errors import DataError, KindError, StaleModelError, suggest_name

if TYPE_CHECKING:
    from priory.estimators.text_classifier import TextClassifier

DEFAULT_HEADER = "X-Priory"
EXIT_OTHER_CLASS, EXIT_UNSURE, EXIT_TRY_AGAIN = 1, 2, 75  # 75: sysexits.h, "try again later"
MAX_EVIDENCE_IN_HEADER = 5
SHARE_EXPONENT = 0.9  # shares of messages that are at least as extreme overstate what they tell
RARE_SHARE, MAX_CAP = 0.0035, 0.9  # a larger share of messages of another class with as little evidence caps p
MAX_SHOWN_LENGTH = 40  # characters of a word
MAX_ENCODED_BYTES = 45  # 60 characters in base 64; an encoded word may have 75 characters
SECONDS_TO_ANSWER = 20.0
OPTION_NAMES = ("socket", "header", "exit-code", "certainty", "max-unsure", "max-false-positives", "token")


class FilterThresholds(NamedTuple):
    """When a verdict is "unsure".

    ``certainty`` is the least probability; ``max_unsure`` the share of ordinary messages of a class, at most, that may
    be called unsure because they are unusual; ``max_false_positives`` by class, or for all under "", the share of
    messages of other classes, at most, that may be given this class.
    """

    certainty: float = 0.0
    max_unsure: float = 0.05
    max_false_positives: Mapping[str, float] = {}

    @classmethod
    def read(cls, certainty: str | float = 0.0, max_unsure: str | float = 0.05, rates: str = "") -> FilterThresholds:
        """Read the options of a command line; raises ValueError.

        >>> FilterThresholds.read(0.5, "0.1", "spam=0.001").max_false_positives
        {'spam': 0.001}
        """
        pairs = (pair.rpartition("=") for pair in rates.split(",") if pair)
        found = cls(float(certainty), float(max_unsure), {label: float(rate) for label, _, rate in pairs})
        if not all(0 <= value <= 1 for value in (*found[:2], *found.max_false_positives.values())):
            raise ValueError("a probability or a share is not between 0 and 1")
        return found

    def find_doubt(self, label: str, probability: float, explained: dict[str, Any]) -> str:
        """Why a message gets no label; empty if it gets one."""
        sides, kind = explained.get("sides", {}), explained.get("doubt", "")
        if kind == "young" and self.max_unsure > 0:
            return kind
        if label in sides and sides[label]["typicality"] < self.max_unsure:
            return str(kind)
        rate = self.max_false_positives.get(label, self.max_false_positives.get("", 1.0))
        if any(side["share_against"] > rate for name, side in sides.items() if name != label):
            return "possible"
        return "uncertain" if probability < self.certainty else ""


class Verdict(NamedTuple):
    """A model's prediction for a message; the label is None if it is unsure, and ``doubt`` says why.

    "young": too few messages were learned; "contrary": it has unusually strong evidence against its class; "unlike": it
    has unusually little for it; "possible": more messages of other classes than allowed have as much evidence for it;
    "uncertain": its probability is too low.
    """

    label: str | None
    probability: float
    evidence: tuple[tuple[str, float], ...]  # words and their decibans
    doubt: str = ""
    sides: tuple[float, float] | None = None  # decibans of the strongest words for and against the likeliest class

    def format(self) -> str:
        """Format the value of the header as one line of ASCII; other characters become encoded words (RFC 2047).

        >>> Verdict("spam", 0.99312, (("cash", 8.7), ("zürich", -1.2)), "", (50.0, 1.2)).format()
        'spam; probability=0.9931; for=50.0; against=1.2; evidence="cash +8.7, =?utf-8?b?esO8cmljaA==?= -1.2"'
        """
        words = ", ".join(f"{_encode_word(word)} {weight:+.1f}" for word, weight in self.evidence)
        label = "unsure" if self.label is None else _encode_word(self.label)
        doubt = f"doubt={self.doubt}; " if self.doubt else ""
        sides = "for={:.1f}; against={:.1f}; ".format(*self.sides) if self.sides else ""
        # mail programs decode an encoded word only if it has blanks around it
        value = f'{label}; probability={self.probability:.4f}; {doubt}{sides}evidence="{words}"'
        return value.replace("?=;", "?= ;").replace('"=?', '" =?')

    def find_exit_code(self, wanted: str | None) -> int:
        """Return 0 if the label is the wanted one (or none is wanted), 2 if the model is unsure, else 1."""
        if wanted is None or self.label == wanted:
            return 0
        return EXIT_UNSURE if self.label is None else EXIT_OTHER_CLASS


def _encode_word(word: str) -> str:
    """Truncate a word for the header, and encode it (RFC 2047) if it contains characters that need it."""
    word = word[:MAX_SHOWN_LENGTH]
    # printable ASCII except quote, comma, semicolon and backslash, which have a meaning in the header
    if re.fullmatch(r"[ !#-+\--:<-\[\]-~]+", word) and "=?" not in word:
        return word
    # cut at a character boundary
    start = word.encode("utf-8", "replace")[:MAX_ENCODED_BYTES].decode("utf-8", "ignore")
    return f"=?utf-8?b?{b2a_base64(start.encode(), newline=False).decode()}?="


def check_label(label: str, classes: Iterable[object]) -> None:
    """Raise DataError if the label is not a class of the model: new classes must be requested explicitly."""
    names = [str(known) for known in classes]
    if label not in names:
        hint = suggest_name(label, names)
        raise DataError(f"the model has no class {label!r}{hint}; with --new-class (new_class=1) it gets one")


def read_quick_options(arguments: list[str]) -> tuple[str, dict[str, str]] | None:
    """Return the model and options of a command line, or None if it has any other option, such as --help.

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
        import socket  # a model file needs none

        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SECONDS_TO_ANSWER)
        self._socket.connect(path)
        self._authorization = f"Authorization: Bearer {token}\r\n" if token else ""

    def post_mail(self, path: str, message: bytes, key: str | None = None) -> dict[str, Any]:
        """Send a message and return the service's answer; raise OSError if the service rejects it."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/rfc822\r\n{self._authorization}"
        head += f"Idempotency-Key: {key}\r\n" if key else ""
        self._socket.sendall(f"{head}Content-Length: {len(message)}\r\n\r\n".encode("ascii") + message)
        received = b""
        # the head of the answer, then as much body as it declares
        while b"\r\n\r\n" not in received:
            received += self._receive()
        headers, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?im)^content-length: *(\d+)", headers)[1])  # type: ignore[index]
        while len(body) < length:
            body += self._receive()
        answer: dict[str, Any] = json.loads(body)
        if headers[9:12] != b"200":  # "HTTP/1.1 200 OK"
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
    """Return the name of a model in the service: its file name without folder and suffix."""
    return model.rpartition("/")[2].removesuffix(".priory")


def judge_by_service(
    connection: ServiceConnection, model: str, message: bytes, thresholds: FilterThresholds
) -> Verdict:
    """Classify a message by the model of a running service."""
    path = f"/v1/models/{find_model_name(model)}"
    predicted = connection.post_mail(f"{path}/predict", message)["predictions"][0]
    # a second request on the same connection
    explained = connection.post_mail(f"{path}/explain", message)["explanations"][0]
    return make_verdict(str(predicted["label"]), float(predicted["probability"]), explained, thresholds)


def judge_by_file(path: str, key: str | None, message: bytes, thresholds: FilterThresholds) -> Verdict:
    """Classify a message by a model file."""
    from priory.storage import load
    from priory.text.mail import read_mail

    model = check_text_model(load(path, key=key), path)
    if not hasattr(model, "statistics_"):
        raise StaleModelError(f"{path}: knows no messages; teach it some with priory learn")
    text = read_mail(message, model.reader).text
    shares, explained = model.predict_proba([text])[0], model.explain([text])[0].to_dict()
    return make_verdict(str(model.classes_[shares.argmax()]), float(shares.max()), explained, thresholds)


def choose_judge(
    model: str, socket_path: str | None, token: str | None, key: str | None, thresholds: FilterThresholds
) -> Callable[[bytes], Verdict]:
    """How a message is classified: by a running service if there is a socket, else by a model file."""
    if socket_path:
        return lambda message: judge_by_service(ServiceConnection(socket_path, token), model, message, thresholds)
    return lambda message: judge_by_file(model, key, message, thresholds)


def pass_mail_on(judge: Callable[[bytes], Verdict], header: str, wanted: str | None) -> int:
    """Write the message on standard input to standard output with its verdict as a header; return the exit code."""
    message, code = sys.stdin.buffer.read(), EXIT_TRY_AGAIN
    try:
        verdict = judge(message)
        message, code = add_header(message, header, verdict.format()), verdict.find_exit_code(wanted)
    except Exception as error:
        print(f"priory: the message is passed on as it came: {error}", file=sys.stderr)
    sys.stdout.buffer.write(message)
    sys.stdout.buffer.flush()
    return code


def check_text_model(model: object, path: str) -> TextClassifier:
    """Return the model, or raise an error if it does not read texts; importing its class would import all others."""
    if model is None:
        raise FileNotFoundError(2, "No such file or directory", path)
    if type(model).__name__ != "TextClassifier":
        raise KindError(f"{path}: is a {type(model).__name__}; mail needs a TextClassifier")
    return model  # type: ignore[return-value]


def make_verdict(label: str, probability: float, explained: dict[str, Any], thresholds: FilterThresholds) -> Verdict:
    """Judge a message by the likeliest label, its probability and the ledger.

    A sender can add evidence for a label, but cannot remove evidence against it. The odds are therefore capped by the
    contrary evidence alone: the share of messages of the class with as much evidence against it, over the share of
    messages of another class with as little evidence for theirs. The cap is never below even odds, at most 9 : 1 if
    that is no rare share, and there is none if no message of another class had so little evidence.
    """
    lines = explained["evidence"][:MAX_EVIDENCE_IN_HEADER]
    evidence = tuple((str(line["name"]), float(line["decibans"])) for line in lines)
    doubt, sides = thresholds.find_doubt(label, probability, explained), explained.get("sides", {})
    if label in sides and doubt != "young":
        others = [side for name, side in sides.items() if name != label]
        shares = [side["share_for"] for side in others if side["share_for"] * (1 + side["texts"]) > 1.5]
        if shares:
            odds = (sides[label]["share_against"] / max(shares)) ** SHARE_EXPONENT
            cap = max(odds / (1 + odds), 1 / 2)
            probability = min(probability, cap, MAX_CAP if max(shares) > RARE_SHARE else 1.0)
    both = (float(sides[label]["for"]), float(sides[label]["against"])) if label in sides else None
    return Verdict(None if doubt else label, probability, evidence, doubt, both)


def add_header(message: bytes, name: str, value: str) -> bytes:
    """Add a header to a message, and remove headers of the same name, which may be forged.

    >>> add_header(b"x-priory: ham;\\n lies\\nSubject: hi\\n\\nx-priory: body\\n", "X-Priory", "spam")
    b'X-Priory: spam\\nSubject: hi\\n\\nx-priory: body\\n'
    """
    end_of_line = b"\r\n" if b"\r\n" in message[:1000] else b"\n"
    parts = re.split(rb"(\r?\n\r?\n)", message, maxsplit=1)
    # the header with its continuation lines
    own = re.compile(rb"(?im)^" + re.escape(name.encode()) + rb":.*(?:\r?\n[ \t].*)*(?:\r?\n|\Z)")
    if re.match(rb"\r?\n", message):  # no headers at all
        parts = [b"", message]
    elif len(parts) > 1:
        parts[0] += end_of_line
        parts[1] = end_of_line
    head = own.sub(b"", parts[0])
    # an mbox "From " line stays in front of the headers
    envelope, head = re.fullmatch(rb"(?s)((?:>?From .*?\n)?)(.*)", head).groups()  # type: ignore[union-attr]
    return envelope + f"{name}: {value}".encode() + end_of_line + head + b"".join(parts[1:])
