"""The server of the page: a few addresses, none of which takes a path.

Runs are asked for by number and images by a name of a fixed list, so that no part of a request ever becomes part of a
path. :class:`~fouriscope.viewer.security.Guard` stands before all of it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fouriscope.errors import FouriscopeError, InvalidInputError
from fouriscope.viewer.connections import LimitedProtocol
from fouriscope.viewer.events import Watcher
from fouriscope.viewer.images import COLOUR_NAMES, IMAGE_NAMES, ShownImage
from fouriscope.viewer.predictions import KINDS
from fouriscope.viewer.runs import ViewedRun, viewed_runs
from fouriscope.viewer.security import Guard, new_token

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LONGEST_HEADERS = 16 * 1024
BACKLOG = 128


def make_app(paths: Sequence[Path], *, token: str, port: int) -> Guard:
    """The application that shows the run folders ``paths`` to who has the ``token``."""
    runs = viewed_runs(paths)
    return _guarded(runs, Watcher(runs), token, port)


def _guarded(runs: list[ViewedRun], watcher: Watcher, token: str, port: int) -> Guard:
    return Guard(_routes(runs, watcher), token=token, port=port)


def _routes(runs: list[ViewedRun], watcher: Watcher) -> Starlette:
    static = {item.name: item.read_bytes() for item in files("fouriscope.viewer").joinpath("static").iterdir()}

    def of_run(answer: Callable[[ViewedRun, Request], Response]) -> Callable[[Request], Response]:
        """An endpoint for one run; what the run cannot give is said in words."""

        def endpoint(request: Request) -> Response:
            index = request.path_params["run"]
            if not index < len(runs):
                return PlainTextResponse(f"There are {len(runs)} runs, counted from 0.\n", 404)
            try:
                return answer(runs[index], request)
            except (FouriscopeError, OSError) as error:
                return PlainTextResponse(f"{error}\n", 404)

        return endpoint

    async def index(request: Request) -> Response:
        return Response(static["index.html"], media_type=TYPES[".html"])

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static or name == "index.html":
            return PlainTextResponse("The page has no such part.\n", 404)
        return Response(static[name], media_type=TYPES[Path(name).suffix])

    def every_run(request: Request) -> Response:
        return JSONResponse([run.describe() for run in runs])

    async def events(request: Request) -> Response:
        if watcher.is_full:
            return PlainTextResponse("Too many pages are listening; close some.\n", 503)
        return StreamingResponse(watcher.events(), media_type="text/event-stream")

    return Starlette(
        routes=[
            Route("/", index),
            Route("/static/{name}", asset),
            Route("/api/runs", every_run),
            Route("/api/events", events),
            Route("/api/runs/{run:int}", of_run(lambda run, request: JSONResponse(run.describe()))),
            Route("/api/runs/{run:int}/config", of_run(lambda run, request: PlainTextResponse(run.config()))),
            Route("/api/runs/{run:int}/summary", of_run(lambda run, request: JSONResponse(run.summary()))),
            Route("/api/runs/{run:int}/metrics", of_run(_metrics)),
            Route("/api/runs/{run:int}/leds", of_run(_leds)),
            Route("/api/runs/{run:int}/image/{name}", of_run(_image)),
            Route("/api/runs/{run:int}/led/{led:int}/{name}", of_run(_led_frame)),
            Route("/api/runs/{run:int}/figures/{name}", of_run(_figure)),
        ]
    )


def _metrics(run: ViewedRun, request: Request) -> Response:
    """Lines from number ``from`` on, if the file is still the one of ``generation``; all of them otherwise."""
    run.metrics.read()
    start = _number(request, "from") if _number(request, "generation") == run.metrics.generation else 0
    return JSONResponse({"generation": run.metrics.generation, "from": start, "columns": run.metrics.columns(start)})


def _leds(run: ViewedRun, request: Request) -> Response:
    return JSONResponse(run.leds(with_misfits=request.query_params.get("misfits") == "1"))


def _image(run: ViewedRun, request: Request) -> Response:
    name, is_tiff = _name_and_kind(request, (*IMAGE_NAMES, *COLOUR_NAMES))
    # Before the image: one that is replaced meanwhile must not pass for the older version.
    version = f'"{run.image_version()}"'
    if request.headers.get("if-none-match") == version:
        return Response(status_code=304, headers={"ETag": version})
    return _answer(run.images.image(name), f"{run.name} {name}", version, is_tiff=is_tiff)


def _led_frame(run: ViewedRun, request: Request) -> Response:
    name, is_tiff = _name_and_kind(request, KINDS)
    led, version = request.path_params["led"], f'"{run.predictions.version()}"'
    values = run.predictions.frame(led, name)
    pixel = run.predictions.pixel() * 1e6
    return _answer(ShownImage(values, (pixel, pixel), "um", ""), f"{run.name} {name} {led}", version, is_tiff=is_tiff)


def _figure(run: ViewedRun, request: Request) -> Response:
    return Response(run.figure(request.path_params["name"]), media_type="image/png")


def _answer(image: ShownImage, title: str, version: str, *, is_tiff: bool) -> Response:
    rows, columns = image.values.shape
    headers = {
        "ETag": version,
        "X-Shape": f"{rows},{columns}",
        "X-Step": f"{image.step[0]!r},{image.step[1]!r}",
        "X-Axis-Unit": image.axis_unit,
        "X-Unit": image.unit,
        "X-Centred": str(int(image.centred)),
    }
    if is_tiff:
        safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in title)
        headers["Content-Disposition"] = f'attachment; filename="{safe}.tif"'
        return Response(image.as_tiff(title), media_type="image/tiff", headers=headers)
    data = image.values.astype(np.dtype("<f4"), copy=False).tobytes()
    return Response(data, media_type="application/octet-stream", headers=headers)


def _name_and_kind(request: Request, known: Sequence[str]) -> tuple[str, bool]:
    asked: str = request.path_params["name"]
    name = asked.removesuffix(".tif")
    if name not in known:
        raise InvalidInputError(f"images are called {', '.join(known)}")
    return name, asked != name


def _number(request: Request, key: str) -> int:
    text = request.query_params.get(key, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInputError(f"{key} must be a whole number")
    return int(text)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, watcher: Watcher) -> None:
        super().__init__(config)
        self._watcher = watcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._watcher.end()  # pages listen forever, and would be cut off with an error
        await super().shutdown(sockets)


class ViewServer:
    """A running server, on 127.0.0.1 and nowhere else; ``port`` 0 means any free port."""

    def __init__(self, paths: Sequence[Path], *, port: int = 0, token: str | None = None) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen(BACKLOG)  # from now on a browser waits for us instead of being refused
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise InvalidInputError(
                f"port {port} cannot be used ({getattr(error, 'strerror', None) or error}); choose another with "
                "--port, or leave it out"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self.token = new_token() if token is None else token
        runs = viewed_runs(paths)
        watcher = Watcher(runs)
        guard = _guarded(runs, watcher, self.token, self.port)
        self.first_visit = guard.first_visit

        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        config: Any = uvicorn.Config(
            guard,
            log_config=None,
            log_level="error",  # what strangers send that is not HTTP is theirs to know
            access_log=False,
            server_header=False,
            lifespan="off",
            h11_max_incomplete_event_size=LONGEST_HEADERS,
            http=LimitedProtocol,
            backlog=BACKLOG,
            ws="none",
            timeout_graceful_shutdown=1,  # for an image that is being made
        )
        self._server = _Server(config, watcher)

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Answer until :meth:`stop`; signals are for who calls, so this is for a thread of its own."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let :meth:`run` end, from any thread."""
        self._server.should_exit = True


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Whether a message is worth a line: that the end of the server ends an answer is not."""
    cause = record.exc_info[1] if record.exc_info else None
    return not isinstance(cause, asyncio.CancelledError) and "timeout graceful shutdown" not in str(record.msg)
