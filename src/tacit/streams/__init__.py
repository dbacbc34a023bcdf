"""Streams: counts that grow every day, with one price for a whole year."""

from tacit.calls import refuse_wrong_calls
from tacit.streams._alarm import Alarm
from tacit.streams._alarm_days import AlarmDays, WatchedDay
from tacit.streams._dataset_kind import STREAM
from tacit.streams._declaration import open_stream, stream
from tacit.streams._event_days import event_days
from tacit.streams._hosted import draw_days, hosted_stream, stored_days, take_days
from tacit.streams._report_book import ReportBook
from tacit.streams._series import Series
from tacit.streams._status import StreamStatus
from tacit.streams._stream import Stream
from tacit.streams._stream_subject import StreamSubject

__all__ = [
    "STREAM",
    "Alarm",
    "AlarmDays",
    "ReportBook",
    "Series",
    "Stream",
    "StreamStatus",
    "StreamSubject",
    "WatchedDay",
    "draw_days",
    "event_days",
    "hosted_stream",
    "open_stream",
    "stored_days",
    "stream",
    "take_days",
]

refuse_wrong_calls(__name__, __all__)
