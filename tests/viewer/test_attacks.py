"""What must not get through: other hosts, no token, paths, links, bodies, HTML."""

from __future__ import annotations

import http.client
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from fouriscope.viewer.security import HEADERS, LONGEST_ADDRESS
from fouriscope.viewer.server import ViewServer
from tests.viewer.served import HOST, PORT, TOKEN, Pages, running_server, written_run

SECRET = "the words of another file"
ADDRESSES = (
    *(
        "/",
        "/static/main.js",
        "/static/style.css",
        "/api/runs",
        "/api/events",
        "/api/runs/0",
        "/api/runs/0/config",
        "/api/runs/0/summary",
    ),
    *("/api/runs/0/metrics", "/api/runs/0/leds", "/api/runs/0/image/phase", "/api/runs/0/image/phase.tif"),
    *("/api/runs/0/figures/figure.png", "/api/runs/0/led/0/measured"),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    return written_run(tmp_path / "run")


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_answered_without_the_token(run: Path, address: str) -> None:
    guarded = Pages([run])
    for wrong in (
        address,
        f"{address}?token=",
        f"{address}?token={TOKEN}x",
        f"{address}?token={TOKEN[:-1]}",
        f"{address}?token={TOKEN.upper()}",
        f"{address}?token={TOKEN}&token=other",
        f"{address}?token=%ff%fe",
        f"/{TOKEN[:-1]}{address}",
        f"//{TOKEN}{address}",
    ):
        answer = guarded.get(wrong)
        assert answer.status_code == 403, wrong
        assert "token" in answer.text
        assert TOKEN not in answer.text


def test_the_token_is_taken_in_the_query_and_in_the_path(run: Path) -> None:
    guarded = Pages([run])
    entrance = guarded.get(f"/?token={TOKEN}")
    assert (entrance.status_code, entrance.headers["location"]) == (307, f"/{TOKEN}/")
    assert guarded.get(f"/{TOKEN}").headers["location"] == f"/{TOKEN}/"
    assert "<!doctype html>" in guarded.get(f"/{TOKEN}/").text
    assert guarded.get(f"/{TOKEN}/static/main.js").status_code == 200
    assert guarded.get(f"/api/runs?token={TOKEN}").json()[0]["name"] == "run"


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_other_hosts_are_refused_even_with_the_token(run: Path, host: str) -> None:
    answer = Pages([run]).get(f"/{TOKEN}/api/runs", headers={"Host": host})
    assert answer.status_code == 403
    assert "127.0.0.1" in answer.text


def test_localhost_is_us(run: Path) -> None:
    assert Pages([run], f"localhost:{PORT}").get(f"/{TOKEN}/api/runs").status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(run: Path, method: str) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    answer = Pages([run]).request(method, f"/{TOKEN}/api/runs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("address", [f"/{TOKEN}/api/runs", "/api/runs", f"/{TOKEN}/nothing", f"/{TOKEN}/"])
def test_every_answer_forbids_caches_frames_and_strangers(run: Path, address: str) -> None:
    answer = Pages([run]).get(address)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    assert "'unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "..\\secret.txt", "....//secret.txt"),
        *("/etc/passwd", "%2fetc%2fpasswd", "secret.txt%00.png", "phase/../../secret.txt", "file:///etc/passwd"),
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        *("/static/", "/api/runs/0/image/", "/api/runs/0/figures/", "/api/runs/0/led/0/", "/api/runs/", "/"),
        *("/api/runs/0/metrics?from=", "/api/runs/0/leds?misfits=", "/api/runs/../"),
    ],
)
def test_a_path_in_a_request_leads_nowhere(run: Path, before: str, path: str) -> None:
    answer = Pages([run]).get(f"/{TOKEN}{before}{path}")
    assert SECRET not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code in (404, 403) or "?" in before


@pytest.mark.parametrize("number", ["1", "99999999999999999999", "-1", "0x0", "0;1", "１", "0/../1"])
def test_only_numbers_of_runs_are_runs(run: Path, number: str) -> None:
    assert Pages([run]).get(f"/{TOKEN}/api/runs/{number}/config").status_code == 404


@pytest.mark.parametrize("number", ["-1", "99999999999999", "1e3", "nan", "١"])
def test_lines_are_asked_for_by_whole_numbers(run: Path, number: str) -> None:
    answer = Pages([run]).get(f"/{TOKEN}/api/runs/0/metrics?from=0&generation={number}")
    assert (answer.status_code, "whole number" in answer.text) == (404, True)


@pytest.mark.parametrize("name", ["snapshot.npz", "status.json", "metrics.jsonl", "config.toml"])
def test_a_link_out_of_the_folder_is_not_followed(run: Path, tmp_path: Path, name: str) -> None:
    outside = written_run(tmp_path / "other", seed=7)
    (outside / "config.toml").write_text(f'# {SECRET}\nkey = "{SECRET}"\n', encoding="utf-8")
    (outside / "status.json").write_text(f'{{"state": "{SECRET}"}}', encoding="utf-8")
    (run / name).unlink()
    (run / name).symlink_to(outside / name)
    guarded = Pages([run])
    for address in ADDRESSES:
        if address != "/api/events":
            assert SECRET not in guarded.get(f"/{TOKEN}{address}").text
    about = guarded.get(f"/{TOKEN}/api/runs").json()[0]
    if name != "config.toml":
        assert (about["state"], "symbolic link" in about["message"]) == ("broken", True)
    else:
        assert "symbolic link" in guarded.get(f"/{TOKEN}/api/runs/0/config").text


def test_a_folder_behind_a_link_is_not_shown_either(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "figure.png").write_text(SECRET, encoding="utf-8")
    (run / "result").symlink_to(tmp_path / "elsewhere")
    answer = Pages([run]).get(f"/{TOKEN}/api/runs/0/figures/figure.png")
    assert (answer.status_code, "symbolic link" in answer.text) == (404, True)


def test_a_link_inside_the_folder_is_fine(run: Path) -> None:
    (run / "config.toml").rename(run / "really.toml")
    (run / "config.toml").symlink_to("really.toml")
    assert "iterations" in Pages([run]).get(f"/{TOKEN}/api/runs/0/config").text


def test_a_pipe_is_not_waited_for(run: Path) -> None:
    (run / "config.toml").unlink()
    os.mkfifo(run / "config.toml")
    assert "not a file" in Pages([run]).get(f"/{TOKEN}/api/runs/0/config").text


def test_names_are_text_and_never_part_of_a_header(tmp_path: Path) -> None:
    run = written_run(tmp_path / '<img src=x onerror="alert(1)">\r\nX-Evil: 1')
    guarded = Pages([run])
    answer = guarded.get(f"/{TOKEN}/api/runs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()[0]["name"] == run.name
    tiff = guarded.get(f"/{TOKEN}/api/runs/0/image/phase.tif")
    assert tiff.status_code == 200
    assert "x-evil" not in tiff.headers
    assert "<" not in tiff.headers["content-disposition"]


def test_addresses_and_bodies_have_limits(run: Path) -> None:
    guarded = Pages([run])
    assert guarded.get(f"/{TOKEN}/api/runs?x={'y' * LONGEST_ADDRESS}").status_code == 414
    assert guarded.request("GET", f"/{TOKEN}/api/runs", content=b"x" * 100).status_code == 413
    many = "&".join(f"a{k}=1" for k in range(100))
    assert guarded.get(f"/api/runs?{many}&token={TOKEN}").status_code == 403


def _raw(server: ViewServer, request: bytes) -> bytes:
    """What comes back for ``request`` as it is, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass  # it did not even read to the end: as good as a refusal
        return answer


@pytest.mark.slow
def test_a_real_server_survives_what_is_not_http(run: Path) -> None:
    with running_server([run]) as server:
        host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
        path = f"/{server.token}/api/runs".encode()
        for request in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
            b"GET\r\n\r\n",
            b"GET " + path + b" HTTP/9.9\r\n" + host + b"\r\n",
            b"GET " + path + b" HTTP/1.1\r\n" + host + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
            b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
            b"GET " + path + b" HTTP/1.1\r\n" + host + host + b"\r\n",
            b"GET " + path + b" HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n",
            b"GET " + path + b" HTTP/1.1\r\n\r\n",
            np.random.default_rng(0).bytes(5000),
        ):
            assert b" 200 " not in _raw(server, request).split(b"\r\n")[0]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", f"/{server.token}/api/runs")
        assert connection.getresponse().status == 200
        connection.close()


def test_the_server_listens_on_this_machine_only(run: Path) -> None:
    with running_server([run]) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server._socket.getsockname()[0] == "127.0.0.1"
        assert HOST not in server.url
