"""Bearer tokens with scopes, stored as hashes in a file.

Each line of a token file is ``NAME SCOPE HASH``. The scopes are ``read`` (predict, explain, evaluate), ``learn`` (also
learn, forget and undo) and ``admin`` (also create, download and delete models).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from priory.errors import DataError, ServiceError, suggest_name
from priory.storage.saved_files import replace_file

Scope = Literal["read", "learn", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "learn", "admin")  # each includes those before it
TOKEN_LINE_PATTERN = re.compile(r"(?P<name>[A-Za-z0-9_.@-]{1,64})\s+(?P<scope>\w+)\s+(?P<digest>[0-9a-f]{64})")
TOKEN_PREFIX = "priory_"  # marks a string as a token of priory


@dataclass(frozen=True)
class Identity:
    """The sender of a request and their scope."""

    name: str
    scope: Scope

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


LOCAL_USER = Identity("local", "admin")  # everyone, if no tokens are configured


class TokenList:
    """The tokens of a file, which is reread when it changes; without a file every sender is the local user."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._stamp, self._tokens = path, (0, 0, 0), list[tuple[Identity, bytes]]()
        if path is not None:
            self._read_changes()

    @property
    def is_required(self) -> bool:
        return self._path is not None

    def identify(self, authorization: str | None) -> Identity:
        """Return the sender by the Authorization header; raises 401 for an unknown token."""
        if self._path is None:
            return LOCAL_USER
        try:
            self._read_changes()
        except (OSError, ValueError):
            logging.getLogger("priory.service").error("the token file cannot be read")
            raise ServiceError(503, "the tokens cannot be read; try again later") from None
        scheme, _, given = (authorization or "").partition(" ")
        digest = hash_token(given.strip())
        # compare with every token in constant time
        found = [sender for sender, known in self._tokens if hmac.compare_digest(known, digest)]
        if scheme.lower() != "bearer" or not found:
            raise ServiceError(401, "give a valid token: Authorization: Bearer TOKEN")
        return found[0]

    def _read_changes(self) -> None:
        assert self._path is not None
        found = self._path.stat()
        stamp = found.st_mtime_ns, found.st_size, found.st_ino  # changes when the file is edited or replaced
        if stamp != self._stamp:
            self._tokens, self._stamp = read_token_file(self._path), stamp


def hash_token(token: str) -> bytes:
    """Hash a token; one round of SHA-256 is enough, as tokens have 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_token_file(path: Path) -> list[tuple[Identity, bytes]]:
    """Read whose tokens a file has, and their SHA-256; empty lines and comments (#) are ignored."""
    tokens = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = TOKEN_LINE_PATTERN.fullmatch(line.strip())
        if found is None or found["scope"] not in SCOPES:
            raise DataError(f"{path}:{number}: is not NAME SCOPE HASH with one of the scopes {', '.join(SCOPES)}")
        tokens.append((Identity(found["name"], found["scope"]), bytes.fromhex(found["digest"])))
    return tokens


def add_token(path: Path, name: str, scope: Scope) -> str:
    """Create a token, add its hash to a file, and return the token, which is stored nowhere."""
    if TOKEN_LINE_PATTERN.fullmatch(f"{name} {scope} {'0' * 64}") is None:
        raise DataError(f"{name!r} cannot be the name of a token; use letters, digits and -_.@")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "a", encoding="utf-8") as file:
        file.write(f"{name} {scope} {hash_token(token).hex()}\n")
    return token


def remove_tokens(path: Path, name: str) -> int:
    """Remove all tokens of a name from a file, and return how many there were."""
    names = [identity.name for identity, _ in read_token_file(path)]
    if name not in names:
        raise DataError(f"{path}: has no token of the name {name!r}{suggest_name(name, names)}")
    kept = [line for line in path.read_text("utf-8").splitlines(True) if line.split()[:1] != [name]]
    replace_file(path, ["".join(kept).encode()])
    return names.count(name)
