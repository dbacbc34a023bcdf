"""Streams: counts that grow every day, with one price for a whole year."""

from tacit.streams._declaration import open_stream, stream
from tacit.streams._series import Series
from tacit.streams._status import StreamStatus
from tacit.streams._stream import Stream

__all__ = ["Series", "Stream", "StreamStatus", "open_stream", "stream"]
