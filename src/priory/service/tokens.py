"""Bearer tokens: who may read, who may teach, who may do everything. A file holds their hashes only.

Each line of a token file is ``NAME SCOPE HASH``. The scopes are ``read`` (predict, explain, evaluate), ``learn`` (also
learn, forget and undo) and ``admin`` (also create, download and delete models).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from priory.errors import DataError, ServiceError

Scope = Literal["read", "learn", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "learn", "admin")  # each includes those before it
TOKEN_LINE_PATTERN = re.compile(r"(?P<name>[A-Za-z0-9_.@-]{1,64})\s+(?P<scope>\w+)\s+(?P<digest>[0-9a-f]{64})")
TOKEN_PREFIX = "priory_"


@dataclass(frozen=True)
class Identity:
    """Who sends a request, and what they may do."""

    name: str
    scope: Scope

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


LOCAL_USER = Identity("local", "admin")  # where no tokens are set, whoever can connect to this machine


@dataclass(frozen=True)
class Token:
    """A token as it is kept: its SHA-256, which nobody can turn back into the token."""

    identity: Identity
    digest: bytes


class TokenList:
    """The tokens that are accepted; without any, everyone is the local user."""

    def __init__(self, tokens: Sequence[Token] = (), *, is_required: bool | None = None) -> None:
        self.tokens = tuple(tokens)
        self.is_required = bool(tokens) if is_required is None else is_required

    def identify(self, authorization: str | None) -> Identity:
        """Who sent a request with this header; an error (401) if nobody is known by it."""
        if not self.is_required:
            return LOCAL_USER
        scheme, _, given = (authorization or "").partition(" ")
        digest = hash_token(given.strip())
        found = [token for token in self.tokens if hmac.compare_digest(token.digest, digest)]
        if scheme.lower() != "bearer" or not found:
            raise ServiceError(401, "give a valid token: Authorization: Bearer TOKEN")
        return found[0].identity


def hash_token(token: str) -> bytes:
    """Tokens are random, 256 bits of them, so one round of SHA-256 is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_token_file(path: Path) -> TokenList:
    """The tokens of a file; empty lines and lines that begin with # are left out."""
    tokens = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = TOKEN_LINE_PATTERN.fullmatch(line.strip())
        if found is None or found["scope"] not in SCOPES:
            raise DataError(f"{path}:{number}: is not NAME SCOPE HASH with one of the scopes {', '.join(SCOPES)}")
        tokens.append(Token(Identity(found["name"], found["scope"]), bytes.fromhex(found["digest"])))
    return TokenList(tokens, is_required=True)


def add_token(path: Path, name: str, scope: Scope) -> str:
    """Make a token, add its hash to a file, and return it: it is shown once and kept nowhere."""
    if TOKEN_LINE_PATTERN.fullmatch(f"{name} {scope} {'0' * 64}") is None:
        raise DataError(f"{name!r} cannot be the name of a token; use letters, digits and -_.@")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "a", encoding="utf-8") as file:
        file.write(f"{name} {scope} {hash_token(token).hex()}\n")
    return token
