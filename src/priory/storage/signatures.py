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

from priory.errors import DataError, MissingDependencyError, ModelFileError

SIGNATURE_SIZES = {"hmac-sha256": 32, "ed25519": 64}  # bytes of a signature
SIGNATURE_PREFIX = b"priory model file\0"  # what the key signs here is signed nowhere else
MIN_KEY_BYTES, MAX_KEY_BYTES = 32, 1 << 16  # bytes of a file with a key


class SignatureKey(Protocol):
    """What signs the digest of a file, and checks such signatures."""

    @property
    def kind(self) -> str: ...

    @property
    def can_sign(self) -> bool:
        """Whether it can sign."""
        ...

    def sign_digest(self, digest: bytes) -> bytes: ...

    def verify_signature(self, digest: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True)
class SharedSecretKey:
    """A secret that those who sign and those who check have in common."""

    value: bytes = field(repr=False)
    kind: str = "hmac-sha256"
    can_sign: bool = True

    def sign_digest(self, digest: bytes) -> bytes:
        return hmac.digest(self.value, SIGNATURE_PREFIX + digest, "sha256")

    def verify_signature(self, digest: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(self.sign_digest(digest), signature)


@dataclass(frozen=True)
class Ed25519Key:
    """A public key, and the private one where it is there."""

    public: Any
    private: Any = field(default=None, repr=False)
    path: str = ""
    kind: str = "ed25519"

    @property
    def can_sign(self) -> bool:
        return self.private is not None

    def sign_digest(self, digest: bytes) -> bytes:
        if not self.can_sign:
            raise DataError(f"{self.path}: is a public key, which can only check; sign with the private one.")
        signature: bytes = self.private.sign(SIGNATURE_PREFIX + digest)
        return signature

    def verify_signature(self, digest: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.public.verify(signature, SIGNATURE_PREFIX + digest)
        except InvalidSignature:
            return False
        return True


def load_signature_key(path: str | os.PathLike[str]) -> SignatureKey:
    """The key of a file."""
    with open(path, "rb") as file:
        content = file.read(MAX_KEY_BYTES + 1)
    if content.lstrip().startswith(b"-----BEGIN"):
        return _load_pem_key(content, os.fspath(path))
    if not MIN_KEY_BYTES <= len(content) <= MAX_KEY_BYTES:
        raise DataError(
            f"{path}: has {len(content):,} bytes; a secret key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES:,}, drawn at random."
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
        raise DataError(f"{path}: is no key in PEM without a password: {' '.join(str(error).split())}.") from None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise DataError(f"{path}: is no Ed25519 key; make one with openssl genpkey -algorithm ed25519.")
    return Ed25519Key(public, private, path)


def check_signature(key: SignatureKey, kind: str | None, digest: bytes, signature: bytes) -> None:
    """Raise BadModel unless whoever has the key signed the digest."""
    if kind is None:
        raise ModelFileError("it is not signed; sign it with priory sign, or get a signed one.")
    if kind != key.kind:
        raise ModelFileError(
            f"it is signed with {kind}, and the key is for {key.kind}; give the key that goes with it."
        )
    if not key.verify_signature(digest, signature):
        raise ModelFileError("the signature is of another key or another file; do not trust it, get the file again.")
