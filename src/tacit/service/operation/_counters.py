"""Counts of requests by route and status, and of refusals by code: the only things that are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import CODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLASSES = 6  # 0xx (closed before an answer) to 5xx
_OTHER = ""


class CounterNames:
    """The fixed list of counters; every process makes the same one from the same routes."""

    def __init__(self, routes: Sequence[str]) -> None:
        self._routes = [_OTHER, *sorted(set(routes) - {_OTHER})]
        self._codes = sorted(CODES)
        self._of_route = {name: number * _CLASSES for number, name in enumerate(self._routes)}
        start = len(self._routes) * _CLASSES
        self._of_code = {name: start + number for number, name in enumerate(self._codes)}

    def __len__(self) -> int:
        return len(self._routes) * _CLASSES + len(self._codes)

    def of_request(self, route: str, status: int) -> int:
        """Return the place of a request's counter; routes that are not known share one."""
        return self._of_route.get(route, 0) + min(status // 100, _CLASSES - 1)

    def of_refusal(self, code: str) -> int | None:
        """Return the place of a refusal's counter."""
        return self._of_code.get(code)

    def requests(self, counts: Sequence[Sequence[int]]) -> Iterator[tuple[str, str, int]]:
        """Return route, class of status and count over all workers, where there is a count."""
        for name, place in self._of_route.items():
            for number in range(_CLASSES):
                found = sum(of_worker[place + number] for of_worker in counts)
                if found:
                    yield name or "other", f"{number}xx", found

    def refusals(self, counts: Sequence[Sequence[int]]) -> Iterator[tuple[str, int]]:
        """Return code and count over all workers, where there is a count."""
        for name, place in self._of_code.items():
            found = sum(of_worker[place] for of_worker in counts)
            if found:
                yield name, found
