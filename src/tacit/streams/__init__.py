"""Streams: counts that grow every day, with one price for a whole year.

Modules, in reading order:

_declaration   the functions ``tc.stream`` and `open_stream`
_stream        the dataset: rows come in, plans begin, days are released
_horizon       the public list of days
_folder        the files of a stream, and who counts on which day
_questions     all questions, each declared once
_planning      what a plan asks of each day, and what it costs
_noise_choice  which mechanism, and readings by least squares
_stream_run    what a run measures, its state and its draws
_series        the content of a release
_alarm         alarms on noisy days, and silent alarms
_late_reports  the reporting triangle, and the book of reports
_hosted        streams that a service looks after
"""

from tacit.calls import refuse_wrong_calls
from tacit.streams._alarm import Alarm, AlarmDays, WatchedDay
from tacit.streams._declaration import open_stream, stream
from tacit.streams._hosted import STREAM, draw_days, hosted_stream, stored_days, take_days
from tacit.streams._late_reports import ReportBook, event_days
from tacit.streams._series import Series
from tacit.streams._stream import Stream, StreamStatus
from tacit.streams._stream_run import StreamSubject

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
