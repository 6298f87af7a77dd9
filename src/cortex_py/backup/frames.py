"""The inside of a sealed object of a collection: compressed text, bytes as they are, and zeros that hide the size.

The form: docs/formats.md.
"""

from __future__ import annotations

import struct
import zlib

from ..errors import BackupCorrupt, BackupError
from .vault_chunks import padded_size

__all__ = ["framed", "malformed", "unframed"]

_FORM = 1
_START = struct.Struct(">BIII")
_LEVEL = 6


def framed(text: bytes, raw: bytes = b"") -> bytes:
    """Text and bytes as one frame; the same give the same."""
    packed = zlib.compress(text, _LEVEL)
    frame = b"".join((_START.pack(_FORM, len(packed), len(text), len(raw)), packed, raw))
    return frame + bytes(padded_size(len(frame)) - len(frame))


def unframed(frame: bytes) -> tuple[bytes, bytes]:
    """The text and the bytes of a frame."""
    if len(frame) < _START.size:
        raise malformed("it is too short")
    form, packed, length, raw = _START.unpack_from(frame)
    if form != _FORM:
        raise BackupError(
            f"An object of the backup has form {form}; this version of Cortex reads form {_FORM}.",
            remedy="Update Cortex.",
        )
    end = _START.size + packed + raw
    if len(frame) != padded_size(end) or frame[end:].strip(b"\0"):
        raise malformed("its lengths do not fit")
    opening = zlib.decompressobj()
    try:
        # One byte more than it says, so that one which says too little is seen and none can be made to explode.
        text = opening.decompress(frame[_START.size : _START.size + packed], length + 1)
    except zlib.error as error:
        raise malformed("its text cannot be decompressed") from error
    if len(text) != length or not opening.eof or opening.unused_data:
        raise malformed("its text has another length")
    return text, frame[_START.size + packed : end]


def malformed(what: str) -> BackupCorrupt:
    """The error for what was sealed with the right key, but not by any version of Cortex."""
    return BackupCorrupt(f"An object of the backup is not formed as one: {what}.", remedy="Push from its machine anew.")
