"""A browser for tests of the service: it keeps cookies and sends forms as a person would."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from tacit.service._service import Service

PASSWORD = "correct horse battery staple"
HOST = "http://house"


@dataclass
class Browser:
    """Cookies of one person's browser; ``client`` is its address."""

    app: Any
    address: str = "192.0.2.1"
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = HOST

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send one request with the cookies, and keep those that come back."""

        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 5))
            async with httpx.AsyncClient(
                transport=transport, base_url=self.host, cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, **more)
                self.cookies = {cookie.name: cookie.value or "" for cookie in client.cookies.jar}
                return answer

        return asyncio.run(go())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def form(self, page: str, path: str, **fields: Any) -> httpx.Response:
        """Open a page and send a form of it."""
        headers = fields.pop("headers", {})
        text = self.get(page).text
        found = re.findall(r'name="csrf" value="([^"]*)"', text)
        return self.send("POST", path, data={"csrf": found[-1] if found else "", **fields}, headers=headers)

    def sign_in(self, name: str, password: str = PASSWORD, **more: Any) -> httpx.Response:
        return self.form("/sign-in", "/sign-in", name=name, password=password, **more)


def code_of(link: str) -> str:
    return link.partition("#")[2]


def events(service: Service) -> list[str]:
    """Return what the audit events say, oldest first."""
    return [row["what"] for row in service.database.rows("SELECT what FROM events ORDER BY position")]


def invited(house: Any, admin: Browser, name: str) -> Browser:
    """Invite a person and let them choose a password; their id is in ``house.people``."""
    page = admin.form("/users", "/users", name=name, shown=name.title()).text
    browser = Browser(house.app)
    code = re.search(r"/welcome#([\w-]+)", page)[1]
    assert browser.form("/welcome", "/welcome", code=code, password=PASSWORD).status_code == 303
    house.people[name] = house.service.database.row("SELECT id FROM users WHERE name = ?", name)["id"]
    return browser
