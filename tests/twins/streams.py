"""A broken copy of a stream's run: it does not keep who has counted on its released days."""

from tacit.streams._stream_run import RunState

__all__ = ["forgets_who_counted"]


def forgets_who_counted(monkeypatch):
    """Let runs keep the number of released days alone, as before they were bound to the marks of a folder."""
    monkeypatch.setattr(RunState, "write", lambda self: str(self.through).encode())
    monkeypatch.setattr("tacit.streams._stream.Stream._refuse_other_marks", lambda *_: None)
