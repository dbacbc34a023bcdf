"""Addresses and tokens: nothing secret leaves by the wrong door."""

from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path

import pytest

import tacit as tc
from tacit import TacitError
from tacit.client._http_calls import Token, read_address, read_token

SECRET = "tct_canary-0123456789"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://stats.example.org", "https://stats.example.org"),
        ("https://stats.example.org:8443/dp/", "https://stats.example.org:8443/dp"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.5", "http://127.0.0.5"),
        ("http://[::1]:80/", "http://[::1]"),
    ],
)
def test_an_address_is_read(url, shown):
    assert str(read_address(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://stats.example.org", "http://10.0.0.1", "http://localhost.example.org", "http://127.0.0.1.nip.io",
        "ftp://stats.example.org", "file:///etc/passwd", "stats.example.org", "https://", "", None, 5,
        f"https://ana:{SECRET}@stats.example.org", f"https://stats.example.org/?token={SECRET}",
        f"https://stats.example.org/#{SECRET}", "https://stats.example.org:0x50", "https://a b",
        "https://stats.example.org\r\nX: 1", "https://st\N{CYRILLIC SMALL LETTER A}ts.example.org",
    ],
)  # fmt: skip
def test_another_address_is_refused_and_no_secret_is_shown(url):
    with pytest.raises(TacitError) as caught:
        read_address(url)
    assert caught.value.code == "bad-parameter"
    assert SECRET not in str(caught.value)


def test_plain_http_to_another_machine_needs_a_word():
    assert str(read_address("http://10.0.0.1", insecure=True)) == "http://10.0.0.1"


def test_a_token_comes_from_text_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token.txt").write_text(SECRET + "\n")
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    monkeypatch.delenv("TACIT_TOKEN_FILE", raising=False)
    for given in (SECRET, tmp_path / "token.txt"):
        assert read_token(given).header == f"Bearer {SECRET}"
    with pytest.raises(TacitError, match="a token is needed"):
        read_token(None)
    monkeypatch.setenv("TACIT_TOKEN_FILE", str(tmp_path / "token.txt"))
    assert read_token(None).header == f"Bearer {SECRET}"
    monkeypatch.setenv("TACIT_TOKEN", "tct_another-one")
    assert read_token(None).header == "Bearer tct_another-one"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "short",
        "with a space in it",
        "two\r\nlines-of-it",
        "x" * 501,
        5,
        b"tct_bytes",
        "tct_\N{SNOWMAN}bcdef",
    ],
)
def test_what_is_not_a_token_is_refused_without_showing_it(given):
    with pytest.raises(TacitError) as caught:
        read_token(given)
    assert str(given) not in str(caught.value) or not given


def test_a_missing_file_is_named_and_nothing_of_another_file_is_shown(tmp_path):
    with pytest.raises(TacitError, match=r"the file token\.txt cannot be read"):
        read_token(tmp_path / "token.txt")
    (tmp_path / "other").write_bytes(b"\xff\xfe secret")
    with pytest.raises(TacitError) as caught:
        read_token(tmp_path / "other")
    assert "secret" not in str(caught.value)


def test_a_token_is_in_no_text_copy_or_file():
    token = Token(SECRET)
    connection = tc.connect("http://127.0.0.1:1", token=SECRET)
    for thing in (token, connection, connection._calls):
        assert SECRET not in repr(thing) + str(thing)
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="not copied or stored"):
                copied(thing)


def test_a_token_is_in_no_error_of_the_network(monkeypatch):
    monkeypatch.setattr("tacit.client._http_calls._PAUSES", ())
    with pytest.raises(TacitError) as caught:
        tc.connect("http://127.0.0.1:1", token=SECRET).catalogue()
    assert caught.value.code == "service-unreachable"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_token_is_read_from_a_path_object_only(tmp_path):
    """Text is the token itself: a path in text would be sent to the service."""
    (tmp_path / "t").write_text(SECRET)
    assert read_token(str(Path("abcdefgh"))).header == "Bearer abcdefgh"
