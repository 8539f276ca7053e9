"""Signatures of model files: they prove who wrote a file, while a checksum shows only that it is undamaged.

A key is a PEM file with an Ed25519 key. The private half signs; the public half is enough to check signatures.

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from priory.errors import DataError, ModelFileError, import_extra

SIGNATURE_KIND, SIGNATURE_BYTES = "ed25519", 64
SIGNATURE_PREFIX = b"priory model file\0"  # domain separation: signatures made for other purposes are invalid here
MAX_KEY_BYTES = 1 << 16  # size of a key file


@dataclass(frozen=True)
class Ed25519Key:
    """An Ed25519 public key, with the private key if it is known."""

    public: Any
    private: Any = field(default=None, repr=False)
    path: str = ""

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


def load_signature_key(path: str | os.PathLike[str]) -> Ed25519Key:
    """Load the key from a file in PEM format."""
    import_extra("cryptography.exceptions", "Ed25519 keys need cryptography", "priory[sign]")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    with open(path, "rb") as file:
        pem = file.read(MAX_KEY_BYTES)
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
    return Ed25519Key(public, private, os.fspath(path))


def check_signature(key: Ed25519Key, digest: bytes, signature: bytes) -> None:
    """Raise ModelFileError unless the digest was signed with the key; the signature is empty if the file has none."""
    if not signature:
        raise ModelFileError("it is not signed; sign it with `priory sign`, or get a signed file.")
    if not key.verify_signature(digest, signature):
        raise ModelFileError("the signature belongs to another key or another file; do not trust this file.")
