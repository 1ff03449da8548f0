"""Framed messages over a local stream socket: the one border between the HTTP process and the engine process.

A frame is a 4-byte little-endian length and a msgpack body (`messages.py`). `Frames` turns received bytes into messages
for either side; `Channel` is the engine's blocking end. Knows nothing of what the messages mean.
"""

import select
import socket
import struct
from typing import Generic, TypeVar

import msgspec

from octavo_runtime.engine.messages import FromEngine, ToEngine

M = TypeVar("M")

_LENGTH = struct.Struct("<I")
_RECEIVE_BYTES = 1 << 18


class ChannelClosedError(ConnectionError):
    """The other process is gone."""


class Encoder:
    """Messages -> frames."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()

    def encode(self, message: object) -> bytes:
        """One frame; the body must stay below 4 GiB."""
        body = self._encoder.encode(message)
        return _LENGTH.pack(len(body)) + body


class Frames(Generic[M]):
    """Received bytes -> messages; keeps an incomplete frame until its rest arrives."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[M]) -> None:
        self._decoder = decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[M]:
        """The messages completed by `data`, in order."""
        buffer = self._buffer
        buffer += data
        messages: list[M] = []
        start, end = 0, len(buffer)
        while end - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if end - start - _LENGTH.size < length:
                break
            start += _LENGTH.size
            messages.append(self._decoder.decode(bytes(buffer[start : start + length])))
            start += length
        del buffer[:start]
        return messages


def from_engine_frames() -> Frames[FromEngine]:
    """Decodes what the engine sends."""
    return Frames(msgspec.msgpack.Decoder(FromEngine))


class Channel:
    """The engine's end: blocking sends, polled receives."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)
        self._socket = sock
        self._encoder = Encoder()
        self._frames: Frames[ToEngine] = Frames(msgspec.msgpack.Decoder(ToEngine))

    def send(self, message: FromEngine) -> None:
        """Blocks until the kernel has taken the frame. Raises ChannelClosedError when the front end is gone."""
        try:
            self._socket.sendall(self._encoder.encode(message))
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def receive(self, timeout: float) -> list[ToEngine]:
        """Messages that are there, waiting up to `timeout` seconds for the first. Raises ChannelClosedError at the end of
        the stream."""
        readable, _, _ = select.select([self._socket], [], [], timeout)
        if not readable:
            return []
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not data:
            raise ChannelClosedError("the front end closed the channel")
        return self._frames.feed(data)
