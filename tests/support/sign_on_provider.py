"""A small provider of OpenID Connect that really answers over HTTP, and can be told to do things wrongly."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT = "tacit-test"
SECRET = "secret-of-the-client"


@cache
def _key(name: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": name.rpartition(" ")[2]})


class Provider:
    """Signs people in without asking; ``claims`` and ``signs`` change what its tokens say."""

    def __init__(self) -> None:
        self.key, self.other = _key("one"), _key("other, but named one")
        self.claims: dict[str, Any] = {}
        self.signs = "RS256"
        self.subject = "subject-1"
        self.published: Any = None
        self.codes: dict[str, dict[str, str]] = {}
        self.issuer_shown = ""
        self.public = False
        self.asked: list[str] = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server = server
        self.issuer = f"http://127.0.0.1:{server.server_address[1]}"
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def sign_in(self, address: str) -> str:
        """Do what the provider's page does: give a code for the address that the browser was sent to."""
        parts = urlsplit(address)
        assert address.startswith(f"{self.issuer}/authorize?")
        asked = dict(parse_qsl(parts.query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}-{time.monotonic_ns()}"
        self.codes[code] = asked
        back = urlsplit(asked["redirect_uri"])
        return f"{back.path}?" + urlencode({"code": code, "state": asked["state"]})

    def _token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": self.subject, "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.signs == "none":
            parts = [json.dumps({"alg": "none"}), json.dumps(claims)]
            return ".".join(base64.urlsafe_b64encode(x.encode()).decode().rstrip("=") for x in parts) + "."
        if self.signs == "HS256":  # the public key misused as a shared secret
            key = OctKey.import_key(self.key.as_pem(private=False))
            return jwt.encode({"alg": "HS256", "kid": "one"}, claims, key, algorithms=["HS256"])
        if self.signs == "shared key":  # a published shared secret, with which anybody can sign
            key = self.published = OctKey.generate_key(256, {"kid": "one"})
            return jwt.encode({"alg": "HS256", "kid": "one"}, claims, key, algorithms=["HS256"])
        key = self.other if self.signs == "other key" else self.key
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                provider.asked.append(self.path)
                if self.path == "/jwks":
                    key = provider.published or provider.key
                    return self._answer({"keys": [key.as_dict(private=isinstance(key, OctKey))]})
                issuer = provider.issuer
                return self._answer({
                    "issuer": provider.issuer_shown or issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token", "jwks_uri": f"{issuer}/jwks",
                    "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                })  # fmt: skip

            def do_POST(self) -> None:
                provider.asked.append(self.path)
                raw = self.rfile.read(int(self.headers["content-length"]))
                sent = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
                asked = provider.codes.pop(sent.get("code", ""), None)
                basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
                digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                good = asked is not None and challenge == asked["code_challenge"]
                known = provider.public or self.headers["authorization"] == f"Basic {basic}"
                if not good or not known:
                    return self._answer({"error": "invalid_grant"}, 400)
                token = provider._token(asked or {})
                return self._answer({"access_token": "a", "token_type": "Bearer", "id_token": token})

            def _answer(self, document: object, status: int = 200) -> None:
                raw = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        return Handler
