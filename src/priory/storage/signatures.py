"""Signatures: that whoever has the key wrote the file, where a checksum says only that it is whole.

A key is a file. If it is PEM it holds an Ed25519 key, and with the public one alone everybody can check; any other file
of 32 bytes or more is a secret for HMAC-SHA-256, which whoever checks could sign with as well. What the key is decides
how a signature is checked, never what the model file says of itself.

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    openssl rand -out secret.key 32
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from priory.errors import BadModel, DataError, Missing

SIZES = {"hmac-sha256": 32, "ed25519": 64}  # bytes of a signature
PURPOSE = b"priory model file\0"  # what the key signs here is signed nowhere else
LEAST, MOST = 32, 1 << 16  # bytes of a file with a key


class Key(Protocol):
    """What signs the digest of a file, and checks such signatures."""

    @property
    def kind(self) -> str: ...

    @property
    def secret(self) -> bool:
        """Whether it can sign."""
        ...

    def signed(self, digest: bytes) -> bytes: ...

    def agrees(self, digest: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True)
class Shared:
    """A secret that those who sign and those who check have in common."""

    value: bytes = field(repr=False)
    kind: str = "hmac-sha256"
    secret: bool = True

    def signed(self, digest: bytes) -> bytes:
        return hmac.digest(self.value, PURPOSE + digest, "sha256")

    def agrees(self, digest: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(self.signed(digest), signature)


@dataclass(frozen=True)
class Pair:
    """A public key, and the private one where it is there."""

    public: Any
    private: Any = field(default=None, repr=False)
    path: str = ""
    kind: str = "ed25519"

    @property
    def secret(self) -> bool:
        return self.private is not None

    def signed(self, digest: bytes) -> bytes:
        if not self.secret:
            raise DataError(f"{self.path}: is a public key, which can only check; sign with the private one.")
        signature: bytes = self.private.sign(PURPOSE + digest)
        return signature

    def agrees(self, digest: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.public.verify(signature, PURPOSE + digest)
        except InvalidSignature:
            return False
        return True


def key_from(path: str | os.PathLike[str]) -> Key:
    """The key of a file."""
    with open(path, "rb") as file:
        content = file.read(MOST + 1)
    if content.lstrip().startswith(b"-----BEGIN"):
        return _pair(content, os.fspath(path))
    if not LEAST <= len(content) <= MOST:
        raise DataError(f"{path}: has {len(content):,} bytes; a secret key has {LEAST} to {MOST:,}, drawn at random.")
    return Shared(content)


def _pair(pem: bytes, path: str) -> Pair:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise Missing("Ed25519 keys need cryptography: pip install priory[sign].") from None
    try:
        if b"-----BEGIN PUBLIC KEY" in pem:
            public, private = serialization.load_pem_public_key(pem), None
        else:
            private = serialization.load_pem_private_key(pem, password=None)
            public = private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{path}: is no key in PEM without a password: {' '.join(str(error).split())}.") from None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise DataError(f"{path}: is no Ed25519 key; make one with openssl genpkey -algorithm ed25519.")
    return Pair(public, private, path)


def check_signature(key: Key, kind: str | None, digest: bytes, signature: bytes) -> None:
    """Raise BadModel unless whoever has the key signed the digest."""
    if kind is None:
        raise BadModel("it is not signed; sign it with priory sign, or get a signed one.")
    if kind != key.kind:
        raise BadModel(f"it is signed with {kind}, and the key is for {key.kind}; give the key that goes with it.")
    if not key.agrees(digest, signature):
        raise BadModel("the signature is of another key or another file; do not trust it, get the file again.")
