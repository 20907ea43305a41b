"""Who may ask the server, and how: checked before anything else looks at a request.

The server shows measurements of one person on that person's machine. Other programs and users of the machine, and web
pages open in the same browser, must not see them:

* a *token*, new with each start, stands in the address, and nothing is answered without it;
* the *Host* must be ours, because a page can point a name of its own at 127.0.0.1 (DNS rebinding) and ask from there;
* only GET and HEAD, without a body: nothing can be changed, so there is nothing to forge;
* no answer may be kept by a cache, framed, or read by a page from elsewhere, and the page loads nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_ADDRESS = 2048
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """192 random bits, in letters that an address may hold."""
    return secrets.token_urlsafe(24)


class Guard:
    """Passes requests with the token to ``app``; all others get a plain message and nothing else.

    The token stands in the query (``/?token=…``, as printed) or as the first part of the path (``/…/static/page.js``),
    where the page's own files find it without doing anything. The path that ``app`` sees is without it.
    """

    def __init__(self, app: Application, *, token: str, port: int) -> None:
        self.app, self._token = app, token.encode()
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}
        self._port = port
        self.first_visit = threading.Event()  # set by the first request that holds the token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: refused before it opens
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        answer = self._refusal(scope) or self._admit(scope)
        await (self.app if answer is None else answer)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """What is wrong with a request whoever sent it, or None."""
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return PlainTextResponse(
                f"This server answers as 127.0.0.1:{self._port} only. Through a tunnel, use the same port on both "
                f"sides: ssh -L {self._port}:127.0.0.1:{self._port} …\n",
                403,
            )
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET and HEAD requests are allowed.\n", 405, {"Allow": "GET, HEAD"})
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            return PlainTextResponse(f"The address is longer than {LONGEST_ADDRESS} bytes.\n", 414)
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers
        ):
            return PlainTextResponse("A request must not have a body.\n", 413, {"Connection": "close"})
        return None

    def _admit(self, scope: Scope) -> Response | None:
        """None if the request holds the token, which is then taken out of its path; otherwise why not."""
        try:
            asked = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=16).get("token", [])
        except (UnicodeDecodeError, ValueError):
            asked = []
        first, slash, rest = scope["path"].removeprefix("/").partition("/")
        if self._is_token(first):
            self.first_visit.set()
            if not slash:
                return RedirectResponse(f"/{first}/", 307)
            scope["path"] = f"/{rest}"
            scope["raw_path"] = scope["path"].encode()
            return None
        if len(asked) == 1 and self._is_token(asked[0]):
            self.first_visit.set()
            return RedirectResponse(f"/{asked[0]}/", 307) if scope["path"] == "/" else None
        return PlainTextResponse(
            "The address must hold the token that `fouriscope view` printed when it started: copy the whole line.\n",
            403,
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)
