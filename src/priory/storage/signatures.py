"""Signatures of model files: they prove who wrote a file, while a checksum shows only that it is undamaged.

A key is a file. A PEM file holds an Ed25519 key, whose public half is enough to check signatures; any other file of 32
bytes or more is a secret for HMAC-SHA-256, with which anyone who can check signatures can also sign. The algorithm is
determined by the key, never by the model file.

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    openssl rand -out secret.key 32
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from priory.errors import DataError, MissingDependencyError, ModelFileError

SIGNATURE_SIZES = {"hmac-sha256": 32, "ed25519": 64}  # bytes
SIGNATURE_PREFIX = b"priory model file\0"  # domain separation: signatures made for other purposes are invalid here
MIN_KEY_BYTES, MAX_KEY_BYTES = 32, 1 << 16  # size of a key file


class SignatureKey(Protocol):
    """A key that verifies signatures of digests, and may be able to sign."""

    @property
    def kind(self) -> str: ...

    @property
    def can_sign(self) -> bool:
        """Whether the key can sign as well as verify."""
        ...

    def sign_digest(self, digest: bytes) -> bytes: ...

    def verify_signature(self, digest: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True)
class SharedSecretKey:
    """A shared secret for HMAC-SHA-256."""

    value: bytes = field(repr=False)
    kind: str = "hmac-sha256"
    can_sign: bool = True

    def sign_digest(self, digest: bytes) -> bytes:
        return hmac.digest(self.value, SIGNATURE_PREFIX + digest, "sha256")

    def verify_signature(self, digest: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(self.sign_digest(digest), signature)  # in constant time


@dataclass(frozen=True)
class Ed25519Key:
    """An Ed25519 public key, with the private key if it is known."""

    public: Any
    private: Any = field(default=None, repr=False)
    path: str = ""
    kind: str = "ed25519"

    @property
    def can_sign(self) -> bool:
        return self.private is not None

    def sign_digest(self, digest: bytes) -> bytes:
        return self.sign_message(SIGNATURE_PREFIX + digest)

    def sign_message(self, message: bytes) -> bytes:
        """Sign a message, which begins with its purpose."""
        if not self.can_sign:
            raise DataError(
                f"{self.path}: this is a public key, which can only check signatures; sign with the private one."
            )
        signature: bytes = self.private.sign(message)
        return signature

    def verify_signature(self, digest: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.public.verify(signature, SIGNATURE_PREFIX + digest)
        except InvalidSignature:
            return False
        return True


def load_signature_key(path: str | os.PathLike[str]) -> SignatureKey:
    """Load the key from a file."""
    with open(path, "rb") as file:
        content = file.read(MAX_KEY_BYTES + 1)
    if content.lstrip().startswith(b"-----BEGIN"):
        return _load_pem_key(content, os.fspath(path))
    if not MIN_KEY_BYTES <= len(content) <= MAX_KEY_BYTES:
        raise DataError(
            f"{path}: it has {len(content):,} bytes; a secret has {MIN_KEY_BYTES} to {MAX_KEY_BYTES:,} random ones."
        )
    return SharedSecretKey(content)


def _load_pem_key(pem: bytes, path: str) -> Ed25519Key:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingDependencyError("Ed25519 keys need cryptography: pip install priory[sign].") from None
    try:
        if b"-----BEGIN PUBLIC KEY" in pem:
            public, private = serialization.load_pem_public_key(pem), None
        else:
            private = serialization.load_pem_private_key(pem, password=None)
            public = private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{path}: it is not a PEM key without a password: {' '.join(str(error).split())}.") from None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise DataError(f"{path}: it is not an Ed25519 key; make one with openssl genpkey -algorithm ed25519.")
    return Ed25519Key(public, private, path)


def check_signature(key: SignatureKey, kind: str | None, digest: bytes, signature: bytes) -> None:
    """Raise ModelFileError unless the digest was signed with the key."""
    if kind is None:
        raise ModelFileError("it is not signed; sign it with `priory sign`, or get a signed file.")
    if kind != key.kind:
        raise ModelFileError(f"it is signed with {kind}, but the key is for {key.kind}; give the matching key.")
    if not key.verify_signature(digest, signature):
        raise ModelFileError("the signature belongs to another key or another file; do not trust this file.")
