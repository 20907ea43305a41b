"""Connections that ask nothing, ask slowly, or take nothing: dropped, and the page answers meanwhile."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fouriscope.viewer import connections
from fouriscope.viewer.server import ViewServer
from tests.viewer.browser import wait
from tests.viewer.served import running_server, written_run

PATIENCE = 0.5


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ViewServer]:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 10)
    with running_server([written_run(tmp_path / "run", shape=(1500, 1500))]) as running:
        yield running


def connected(server: ViewServer, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.sendall(sent)
    return connection


def is_dropped(connection: socket.socket) -> bool:
    """Whether the other side closed it, now or within some seconds."""
    connection.settimeout(20)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    finally:
        connection.close()
    return True


def answers(server: ViewServer) -> bool:
    asking = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    asking.request("GET", f"/{server.token}/api/runs")
    status = asking.getresponse().status
    asking.close()
    return status == 200


def open_connections(server: ViewServer) -> int:
    return len(server._server.server_state.connections)


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01"], ids=["nothing", "half", "TLS"])
def test_a_request_that_does_not_come_is_not_waited_for(server: ViewServer, head: bytes) -> None:
    assert is_dropped(connected(server, head))
    wait(lambda: open_connections(server) == 0, "the end of the connection")


def test_a_request_that_comes_drop_by_drop_is_not_waited_for(server: ViewServer) -> None:
    connection = connected(server, b"GET / HTTP/1.1\r\n")

    def drip() -> None:
        for _ in range(200):
            connection.sendall(b"X: y\r\n")
            time.sleep(PATIENCE / 5)

    with pytest.raises(OSError):  # reset, or a broken pipe
        drip()
    connection.close()


def test_connections_are_counted_and_the_oldest_idle_one_goes(server: ViewServer) -> None:
    idle = [connected(server) for _ in range(60)]
    assert answers(server), "who asks is let in"
    assert open_connections(server) <= 11
    assert all(is_dropped(connection) for connection in idle)


def test_an_answer_that_nobody_takes_is_dropped_and_one_that_is_taken_slowly_is_not(
    server: ViewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 4 * PATIENCE)  # a busy machine may hold us up for a second
    request = f"GET /{server.token}/api/runs/0/image/phase HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    slow, stuck = connected(server, request), connected(server, request)
    taken = 0
    while taken < 6_000_000 and (piece := slow.recv(250_000)):
        taken += len(piece)
        time.sleep(PATIENCE / 5)  # longer in all than anybody is waited for
    assert taken >= 6_000_000
    wait(lambda: open_connections(server) <= 1, "the end of the connection")
    slow.close()
    stuck.close()


def test_who_listens_stays(server: ViewServer) -> None:
    """An event stream is silent for longer than anybody is waited for."""
    request = f"GET /{server.token}/api/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    connection = connected(server, request)
    time.sleep(3 * PATIENCE)
    assert open_connections(server) == 1
    connection.settimeout(20)
    said = b""
    while b"event: hello" not in said:
        piece = connection.recv(65536)
        assert piece, "the server ended it"
        said += piece
    connection.close()
