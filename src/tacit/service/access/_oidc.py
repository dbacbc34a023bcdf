"""OpenID Connect: the authorization code with PKCE, and the checks of what the provider says.

Only the provider that the operator named is asked. Its tokens must be signed with one of its published keys
by a public-key method, name it as issuer and this service as audience, hold the nonce of this sign-in, and
not have expired.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.service._settings import ServiceSettings

_METHODS: Final = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_TIMEOUT = 10.0
_KEPT = 3600.0  # seconds for which the provider's description is kept
_LEEWAY = 60  # seconds by which two clocks may differ
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_described: dict[str, tuple[float, dict[str, Any]]] = {}


@dataclass(frozen=True, slots=True)
class SignOnProvider:
    """The provider of single sign-on, as the operator named it.

    Parameters
    ----------
    issuer
        Its address; ``/.well-known/openid-configuration`` below it describes it.
    client_id, secret
        By what it knows this service; a secret may be missing.
    name
        What the button on the sign-in page says.
    creates
        Whether a person whom nobody invited becomes a person without any role.
    """

    issuer: str
    client_id: str
    secret: str = field(default="", repr=False)
    name: str = "single sign-on"
    creates: bool = False

    async def address(self, back: str, state: str, nonce: str, verifier: str) -> str:
        """Return where the browser goes to sign in."""
        described = await self._description()
        async with self._client(back) as client:
            address, _ = client.create_authorization_url(
                _checked(described["authorization_endpoint"]), state=state, nonce=nonce,
                code_verifier=verifier,
            )  # fmt: skip
        return str(address)

    async def claims(self, back: str, code: str, nonce: str, verifier: str) -> dict[str, Any]:
        """Exchange a code for the provider's word about a person, and check it."""
        from authlib.oidc.core import CodeIDToken

        described = await self._description()
        async with self._client(back) as client:
            answer = await client.fetch_token(
                _checked(described["token_endpoint"]), code=code, code_verifier=verifier,
                grant_type="authorization_code",
            )  # fmt: skip
        signed = await self._verified(answer["id_token"], described)
        options = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self.client_id},
            "exp": {"essential": True},
            "sub": {"essential": True},
        }
        claims = CodeIDToken(
            signed.claims, signed.header, options,
            {"nonce": nonce, "client_id": self.client_id, "access_token": answer.get("access_token")},
        )  # fmt: skip
        claims.validate(leeway=_LEEWAY)
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise sign_on_failed()
        return dict(claims)

    async def _verified(self, id_token: str, described: dict[str, Any]) -> Any:
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError
        from joserfc.jwk import KeySet

        address = _checked(described["jwks_uri"])
        for fresh in (False, True):
            published: Any = await _document(address, fresh=fresh)
            keys = KeySet.import_key_set(published)
            try:
                return jwt.decode(id_token, keys, algorithms=_METHODS)
            except InvalidKeyIdError:  # the provider may have a new key
                if fresh:
                    raise
        raise sign_on_failed()

    async def _description(self) -> dict[str, Any]:
        description = await _document(_checked(self.issuer.rstrip("/") + "/.well-known/openid-configuration"))
        if description.get("issuer") != self.issuer:
            raise sign_on_failed()
        return description

    def _client(self, back: str) -> Any:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        return AsyncOAuth2Client(
            self.client_id, self.secret or None, scope="openid profile", redirect_uri=back,
            code_challenge_method="S256", timeout=_TIMEOUT, follow_redirects=False,
            verify=_tls(), token_endpoint_auth_method="client_secret_basic" if self.secret else "none",
        )  # fmt: skip


def provider_of(settings: ServiceSettings) -> SignOnProvider | None:
    """Return the provider that the settings name, or None."""
    options = dict(settings.oidc)
    if not options:
        return None
    secret = options.pop("secret_file", "")
    option_names = {"issuer", "client_id", "name", "create"}
    if not {"issuer", "client_id"} <= set(options) or set(options) - option_names:
        raise TacitError(
            "bad-parameter",
            "the settings of single sign-on are issuer, client_id, and if needed name, create, secret_file",
        )
    return SignOnProvider(
        str(options["issuer"]), str(options["client_id"]),
        Path(str(secret)).read_text(encoding="utf-8").strip() if secret else "",
        str(options.get("name", "single sign-on")), options.get("create", False) is True,
    )  # fmt: skip


def sign_on_name(settings: ServiceSettings) -> str:
    """Return what the button for single sign-on says; empty without single sign-on."""
    return str(settings.oidc.get("name", "single sign-on")) if settings.oidc else ""


def subject_of(settings: ServiceSettings, subject: str) -> str:
    """Return how the database names a person of the provider; two providers never mix."""
    if not settings.oidc:
        raise TacitError("bad-parameter", "this service has no single sign-on")
    return f"{settings.oidc.get('issuer', '')} {subject}"


def sign_on_failed() -> TacitError:
    """Return the one refusal of everything that can be wrong with what came back from the provider."""
    return TacitError(
        "sign-on-failed",
        "single sign-on did not work",
        why="the provider did not answer, refused, or its answer does not belong to this sign-in",
        fix="begin again from the sign-in page, or ask an administrator",
    )


@cache
def _tls() -> ssl.SSLContext:
    """Return the rules by which the provider's certificate is checked; making them is slow."""
    return ssl.create_default_context()


async def _document(address: str, *, fresh: bool = False) -> dict[str, Any]:
    """Fetch a JSON document of the provider; it is kept for an hour."""
    import httpx

    cached = _described.get(address)
    if cached is not None and not fresh and cached[0] > time.monotonic():
        return cached[1]
    async with httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, verify=_tls()) as client:
        answer = await client.get(address)
    answer.raise_for_status()
    document: dict[str, Any] = answer.json()
    _described[address] = (time.monotonic() + _KEPT, document)
    return document


def _checked(address: object) -> str:
    """Return an address of the provider, which must be safe against listeners."""
    parts = urlsplit(str(address))
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise sign_on_failed()
    return str(address)
