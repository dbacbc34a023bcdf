"""The head of a request: it is limited in size and in time, before anybody is known."""

import asyncio
import socket

import pytest
import uvicorn

from tacit.service.operation import _connections
from tacit.service.operation._connections import AddressShares, BoundedConnection, shared_connections


async def answering(scope, receive, send):
    assert scope["type"] == "http"
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % len(body)})


def conversation(talk, http=BoundedConnection):
    """Let a coroutine talk to a server with such connections."""

    async def run():
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(answering, http=http, log_config=None, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None
        serving = asyncio.create_task(server._serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            return await asyncio.wait_for(talk(*listening.getsockname()), 60)
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(run())


async def sent(host, port, pieces):
    """Send pieces until the connection is cut; return how many were sent, and what came back."""
    reader, writer = await asyncio.open_connection(host, port)
    number = 0
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
            number += 1
        return number, await reader.read(1000)
    except ConnectionError:
        return number, b""
    finally:
        writer.close()


BEGUN = b"GET / HTTP/1.1\r\nHost: house\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: house\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (BEGUN, b"X: " + b"y" * 8000 + b"\r\n"),
        (BEGUN + b"X: ", b"y" * 8000),
        (b"", b"\r\n" * 4000),
        (CHUNKED + b"0\r\n", b"X: " + b"y" * 8000 + b"\r\n"),
        (CHUNKED + b"0\r\nX: ", b"y" * 8000),
        (CHUNKED + b"1;", b"x=" + b"y" * 7998),
    ],
)
def test_headers_without_end_are_cut(first, piece):
    number, back = conversation(lambda host, port: sent(host, port, [first, *[piece] * 20_000]))
    assert number < 5000  # what the sockets of both sides hold, not 160 MB
    assert b" 200 " not in back


def test_a_head_that_does_not_end_is_cut_in_time(monkeypatch):
    monkeypatch.setattr(_connections, "HEAD_SECONDS", 0.2)
    for first in (b"", BEGUN, b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\nGET"):
        _, back = conversation(lambda host, port, first=first: sent(host, port, [first]))
        assert back.count(b" 200 ") == first.count(b"\r\n\r\n")


def test_usual_requests_pass_one_after_another_and_with_a_slow_body(monkeypatch):
    monkeypatch.setattr(_connections, "HEAD_SECONDS", 3.5)  # a busy machine may pause for seconds

    async def talk(host, port):
        reader, writer = await asyncio.open_connection(host, port)
        found = []
        for _ in range(3):
            writer.write(BEGUN + b"X: " + b"y" * 30_000 + b"\r\n\r\n")
            found.append((await reader.readuntil(b"\r\n0\r\n\r\n")).split(b"\r\n")[0])
            await asyncio.sleep(0.6)
        writer.write(b"POST / HTTP/1.1\r\nHost: house\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(4)
        writer.write(b"12345")
        found.append((await reader.read()).split(b"\r\n")[0])
        writer.close()
        return found

    assert conversation(talk) == [b"HTTP/1.1 200 OK"] * 4


async def held(host, port, number):
    """Open connections and keep them; return what each is answered, and whether one can be opened later."""
    open_ones = [await asyncio.open_connection(host, port) for _ in range(number)]
    await asyncio.sleep(0.05)
    found = []
    for reader, writer in open_ones:
        writer.write(BEGUN + b"\r\n")
        found.append((await reader.read(12))[9:12])
    for _, writer in open_ones:
        writer.close()
    await asyncio.sleep(0.05)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(BEGUN + b"\r\n")
    later = (await reader.read(12))[9:12]
    writer.close()
    return found, later


def test_one_address_cannot_hold_all_connections_and_gives_back_what_it_closes():
    found, later = conversation(lambda *at: held(*at, 5), shared_connections(3, ""))
    assert found == [b"200"] * 3 + [b"429"] * 2
    assert later == b"200"


@pytest.mark.parametrize("proxies", ["127.0.0.1", "10.1.2.3, 127.0.0.0/8", "*"])
def test_a_proxy_brings_the_connections_of_everybody(proxies):
    found, later = conversation(lambda *at: held(*at, 5), shared_connections(3, proxies))
    assert (found, later) == ([b"200"] * 5, b"200")


def test_addresses_are_counted_apart_and_a_network_of_ipv6_as_one():
    shares = AddressShares(1, "10.0.0.1")
    assert shares.take("192.0.2.1") == "192.0.2.1"
    assert shares.take("192.0.2.1") is None
    assert shares.take("192.0.2.2") is not None
    assert shares.take("2001:db8::1") is not None
    assert shares.take("2001:db8::2") is None
    assert shares.take("2001:db8:0:1::2") is not None
    assert shares.take("10.0.0.1") == shares.take("10.0.0.1") == ""
    assert AddressShares(0).take("192.0.2.1") == ""
    named = AddressShares(1, "the proxy")
    assert [named.take("192.0.2.1"), named.take("192.0.2.1")] == ["192.0.2.1", None]


def test_what_is_given_back_is_forgotten():
    shares = AddressShares(2)
    for _ in range(2):
        places = [shares.take("192.0.2.1") for _ in range(2)]
        for place in places:
            shares.give_back(place)
    assert not shares._held
