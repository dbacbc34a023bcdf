"""A service on the hospital's own machine: it holds patients, ledger and secrets, and answers messages.

Frameworks such as Flower may start a new process for every message. What a hospital must remember between two
messages of a round stays in the service.
"""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing import connection as local
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.federated._messages import MAX_BYTES, refusal

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class MessageHandler(Protocol):
    """Whoever answers messages: a `Hospital`, a `Client`, or a `ServiceLink` to one of them."""

    name: str

    def handle(self, message: bytes) -> bytes:
        """Answer a message."""


class HospitalService:
    """Answer messages on a socket of this machine, until it is closed.

    Only bytes of the protocol travel; nothing that is received runs. The socket belongs to the account that
    started the service, and nobody else can open it. Flower sends the code of its apps to the hospitals: run
    its node under another account, which cannot read patients, and let the group of the socket in.

    Parameters
    ----------
    handler
        The hospital.
    path
        Where the socket is; it must not exist yet. At most 100 letters.
    group
        Whether the group of the socket may open it, too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.learn.federated import Client, ServiceLink, unpack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "north.sock"
    ...     with HospitalService(Client("north", lambda weights: weights), path):
    ...         print(unpack(ServiceLink("north", path).handle(b"hello")).kind)
    refusal
    """

    def __init__(self, handler: MessageHandler, path: str | os.PathLike[str], *, group: bool = False) -> None:
        self._handler = handler
        self._path = Path(path)
        before = os.umask(0o117 if group else 0o177)  # other accounts can never open it, not for a moment
        try:
            self._listener = local.Listener(str(self._path), family="AF_UNIX", backlog=16)
        except OSError:
            raise TacitError(
                "bad-parameter", f"no socket can be opened at {self._path}",
                why="it exists already, its folder is missing or its name is too long",
                fix=Say("choose a short path that does not exist, in a folder of this account"),
            ) from None  # fmt: skip
        finally:
            os.umask(before)
        self._open = True
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the service, and remove the socket."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError), local.Client(str(self._path), family="AF_UNIX"):
                pass  # wakes the thread that waits for a connection
            self._thread.join(timeout=10)
            self._listener.close()

    def _accept(self) -> None:
        while self._open:
            try:
                caller = self._listener.accept()
            except OSError:
                return
            if self._open:
                threading.Thread(target=self._answer, args=(caller,), daemon=True).start()
            else:
                caller.close()

    def _answer(self, caller: Connection) -> None:
        with caller, contextlib.suppress(OSError, EOFError):
            caller.send_bytes(self._handler.handle(caller.recv_bytes(MAX_BYTES)))


class ServiceLink:
    """Forward messages to a `HospitalService` on this machine.

    Parameters
    ----------
    name
        The hospital's name in the study.
    path
        Where the service has its socket.
    """

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self.name = name
        self._path = Path(path)

    def handle(self, message: bytes) -> bytes:
        """Return what the service answers, or a refusal where it cannot be reached."""
        try:
            with local.Client(str(self._path), family="AF_UNIX") as service:
                service.send_bytes(message)
                return service.recv_bytes(MAX_BYTES)
        except (OSError, EOFError):
            missing = TacitError(
                "bad-message", f"the service of {self.name} cannot be reached",
                fix=Say("start the hospital's service on this machine"),
            )  # fmt: skip
            return refusal("", missing)
