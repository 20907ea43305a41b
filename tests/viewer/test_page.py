"""The page, driven in headless Chromium: pictures, comparisons, readings, keys, files to take away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from fouriscope.run.snapshot import read_snapshot
from tests.run.problems import write_acquisition
from tests.viewer.browser import (
    browsing,
    colour_at,
    needs_chromium,
    read_pixel,
    wait,
    wait_for_picture,
    wait_until_drawn,
)
from tests.viewer.served import real_run, running_server, show, written_run

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Path, Path, str]]:
    """Two written runs, and the address of their page."""
    runs = written_run(tmp_path / "first", seed=1), written_run(tmp_path / "second", seed=2)
    with running_server(runs) as server:
        yield *runs, server.url


def phase_of(run: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    snapshot = read_snapshot(run)
    assert snapshot is not None
    return snapshot.phase


def test_a_live_run_is_seen_to_change(tmp_path: Path) -> None:
    config = write_acquisition(tmp_path, stop={"iterations": 1_000_000, "seconds": 60.0})
    run = tmp_path / "run"
    run.mkdir()
    with running_server([run]) as server, browsing(server.url) as page:
        wait(lambda: "Waiting for a run" in page.locator("#runs").inner_text(), "words about an empty folder")
        command = [sys.executable, "-m", "fouriscope.cli.app", "reconstruct", str(config), "--out", str(run), "--quiet"]
        with subprocess.Popen([*command, "--checkpoint-seconds", "1"]) as solver:
            try:
                first = wait_for_picture(page)
                wait(lambda: page.locator('.run[data-state="running"]').count(), "the state of a running run")
                wait_for_picture(page, other_than=first)
                wait(lambda: "left" in page.locator(".run .state").inner_text(), "the time left")
                wait(lambda: page.locator("circle.led").count() == 49, "the map of the LEDs")
            finally:
                solver.terminate()
        wait(lambda: page.locator('.run[data-state="interrupted"]').count(), "the end of the run")
        last = phase_of(run)
        wait(lambda: np.float32(read_pixel(page, 10, 20)[0]) == last[10, 20], "the last picture")


@pytest.mark.parametrize("shaders", [True, False])
def test_pixels_are_read_where_they_are_and_coloured_by_their_values(
    two: tuple[Path, Path, str], shaders: bool
) -> None:
    first, _, url = two
    phase = phase_of(first)
    with browsing(url, shaders=shaders) as page:
        wait_for_picture(page)
        assert page.evaluate("() => window.fouriscope.painter") == ("webgl2" if shaders else "2d")
        rng = np.random.default_rng(0)
        for row, column in rng.integers(0, (40, 50), (12, 2)):
            value, words = read_pixel(page, int(row), int(column))
            assert np.float32(value) == phase[row, column]
            assert f"x {0.2 * column:.2f} µm  y {0.2 * row:.2f} µm" in words
        page.fill("#low", "-0.5")
        page.fill("#high", "0.5")
        page.keyboard.press("Enter")
        wait(lambda: page.get_attribute("#auto", "aria-pressed") == "false", "limits set by hand")
        wait_until_drawn(page)
        for row, column in rng.integers(0, (40, 40), (12, 2)):  # the right end lies below the label or the bar
            if row < 8 or row > 32:
                continue
            grey = 255 * np.clip(phase[row, column] + 0.5, 0, 1)
            assert colour_at(page, int(row), int(column)) == pytest.approx([grey] * 3, abs=2)


def test_zooming_keeps_the_place_and_links_the_panes(two: tuple[Path, Path, str]) -> None:
    first, second, url = two
    with browsing(url) as page:
        wait_for_picture(page, 1)
        read_pixel(page, 12, 18)
        page.mouse.wheel(0, -800)
        wait(lambda: page.evaluate("() => window.fouriscope.state.view.zoom") > 2, "zooming in")
        wait_until_drawn(page)
        here = [page.get_attribute("#readout", name) for name in ("data-row", "data-column")]
        assert here == ["12", "18"]
        places = [page.evaluate("(p) => window.fouriscope.whereIs(p, 12, 18)", pane) for pane in (0, 1)]
        boxes = [page.locator(".pane").nth(pane).bounding_box() for pane in (0, 1)]
        relative = [
            (place["x"] - box["x"], place["y"] - box["y"]) for place, box in zip(places, boxes, strict=True) if box
        ]
        assert relative[0] == pytest.approx(relative[1], abs=1)
        assert np.float32(read_pixel(page, 13, 19, pane=1)[0]) == phase_of(second)[13, 19]
        assert np.float32(read_pixel(page, 13, 19, pane=0)[0]) == phase_of(first)[13, 19]
        page.keyboard.press("f")
        wait(lambda: page.evaluate("() => window.fouriscope.state.view.zoom") == 1, "seeing everything")


def test_two_runs_are_compared_by_difference_swipe_and_blink(two: tuple[Path, Path, str]) -> None:
    first, second, url = two
    difference = phase_of(second).astype(float) - phase_of(first)
    with browsing(url) as page:
        wait_for_picture(page, 1)
        page.click('[data-mode="difference"]')
        wait(lambda: page.locator(".pane").count() == 1, "one pane for two runs")
        for row, column in ((3, 4), (20, 30), (39, 49)):
            value, words = read_pixel(page, row, column)
            assert value == pytest.approx(difference[row, column] - np.median(difference), abs=1e-5)
            assert "difference" in words
        page.keyboard.press("w")
        wait(lambda: page.locator(".pane .handle").is_visible(), "the edge of the swipe")
        middle = [colour_at(page, 20, column) for column in range(50)]
        page.keyboard.press("s")
        wait(lambda: page.locator(".pane").count() == 2, "side by side")
        wait_until_drawn(page)
        sides = [[colour_at(page, 20, column, pane) for column in range(50)] for pane in (0, 1)]
        assert middle[:24] == sides[0][:24]
        assert middle[26:] == sides[1][26:]
        assert sides[0] != sides[1]
        page.keyboard.press("b")
        for name in ("first", "second", "first"):
            wait(lambda name=name: page.locator(".pane .label").first.inner_text() == name, f"{name} in its turn")  # type: ignore[misc]


def test_the_edge_of_a_swipe_can_be_dragged(two: tuple[Path, Path, str]) -> None:
    with browsing(two[2]) as page:
        wait_for_picture(page, 1)
        page.keyboard.press("w")
        wait(lambda: page.locator(".pane").count() == 1, "one pane for two runs")
        box = wait(lambda: page.locator(".handle").bounding_box(), "the edge")
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 200, box["y"] + 40, steps=5)
        page.mouse.up()
        wait(lambda: page.evaluate("() => window.fouriscope.state.swipe") > 0.6, "the edge to move")


def test_runs_of_different_sizes_say_why_they_are_not_compared(tmp_path: Path) -> None:
    runs = written_run(tmp_path / "a"), written_run(tmp_path / "b", shape=(30, 30))
    with running_server(runs) as server, browsing(server.url) as page:
        wait_for_picture(page, 1)
        page.keyboard.press("d")
        wait(lambda: page.locator(".pane").count() == 1, "one pane for two runs")
        wait(lambda: "40 × 50 and 30 × 30" in page.locator(".words").inner_text(), "the reason")


def test_an_update_reaches_the_page(two: tuple[Path, Path, str]) -> None:
    first, _, url = two
    with browsing(url) as page:
        before = wait_for_picture(page)
        written = show(first, seed=11)
        wait_for_picture(page, other_than=before)
        assert np.float32(read_pixel(page, 5, 6)[0]) == written.phase[5, 6]


def test_an_led_shows_its_frames(tmp_path: Path) -> None:
    run = real_run(tmp_path)
    with running_server([run]) as server, browsing(server.url) as page:
        wait_for_picture(page)
        wait(lambda: page.locator("circle.led").count() == 49, "the map of the LEDs")
        page.click('circle.led[data-led="24"]')
        wait(lambda: page.locator('#frames[data-led="24"] canvas').count() == 3, "three frames")
        size = page.evaluate("() => { const c = document.querySelector('#frames canvas'); return [c.width, c.height] }")
        assert size == [24, 24]
        wait(lambda: "misfit" in page.locator("#led-note").inner_text(), "the LED's misfit")
        page.keyboard.press("l")
        wait(lambda: page.locator('#frames[data-led="25"] canvas').count() == 3, "the next LED")


def test_everything_works_with_keys(two: tuple[Path, Path, str]) -> None:
    with browsing(two[2]) as page:
        wait_for_picture(page)

        def state(key: str) -> Any:
            return page.evaluate("(key) => window.fouriscope.state[key]", key)

        for key, name, value in (
            ("3", "quantity", "spectrum"),
            ("2", "quantity", "amplitude"),
            ("1", "quantity", "phase"),
            ("p", "wrapped", True),
            ("m", "map", "viridis"),
            ("d", "mode", "difference"),
            ("s", "mode", "side"),
        ):
            page.keyboard.press(key)
            wait(lambda name=name, value=value: state(name) == value, f"{name} to be {value}")  # type: ignore[misc]
        wait(lambda: page.locator(".pane").count() == 2, "side by side")
        wait_until_drawn(page)
        page.keyboard.press("+")
        page.keyboard.press("ArrowRight")
        assert state("view")["zoom"] > 1
        assert state("view")["x"] > 0.5
        page.keyboard.press("n")
        wait(lambda: page.locator(".pane").count() == 1, "one run alone")
        theme = page.get_attribute("html", "data-theme")
        page.keyboard.press("t")
        assert {theme, page.get_attribute("html", "data-theme")} == {"light", "dark"}
        page.keyboard.press("?")
        wait(lambda: page.locator("#help").is_visible(), "the help")
        page.keyboard.press("Escape")
        wait(lambda: page.locator("#help").is_hidden(), "the end of the help")


def test_a_line_is_drawn_with_shift(two: tuple[Path, Path, str]) -> None:
    with browsing(two[2]) as page:
        wait_for_picture(page)
        wait_until_drawn(page)
        start, end = (
            page.evaluate("([r, c]) => window.fouriscope.whereIs(0, r, c)", at) for at in ([10, 10], [10, 40])
        )
        page.keyboard.down("Shift")
        page.mouse.move(start["x"], start["y"])
        page.mouse.down()
        page.mouse.move(end["x"], end["y"], steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        wait(lambda: page.locator("#detail canvas.plot").count(), "the profile")
        assert page.evaluate("() => window.fouriscope.state.view.x") == 0.5


def test_the_view_and_the_data_can_be_taken_away(two: tuple[Path, Path, str], tmp_path: Path) -> None:
    first, _, url = two
    with browsing(url) as page:
        wait_for_picture(page, 1)
        page.keyboard.press("n")
        wait(lambda: page.locator(".pane").count() == 1, "one run alone")
        with page.expect_download() as download:
            page.keyboard.press("e")
        download.value.save_as(tmp_path / "view.png")
        with page.expect_download() as download:
            page.keyboard.press("E")
        download.value.save_as(tmp_path / "data.tif")
    with Image.open(tmp_path / "view.png") as picture:
        assert picture.format == "PNG"
        assert len(np.unique(np.asarray(picture.convert("L")))) > 20
    assert np.array_equal(tifffile.imread(tmp_path / "data.tif"), phase_of(first))


def test_html_in_names_and_files_is_text(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    run = written_run(tmp_path / evil)
    (run / "config.toml").write_text(f"# {evil}<script>alert(2)</script>\n[stop]\niterations = 10\n", encoding="utf-8")
    (run / "status.json").write_text(f'{{"state": "failed", "reason": "{evil}"}}', encoding="utf-8")
    with running_server([run, written_run(tmp_path / "other")]) as server, browsing(server.url) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        wait_for_picture(page)
        page.click("button.turn")
        wait(lambda: page.locator("#detail pre").count(), "the configuration")
        assert evil in page.locator("#detail pre").inner_text()
        assert page.locator(".run .title span").first.inner_text() == evil
        wait(lambda: evil in page.locator(".pane .label").first.inner_text(), "the name above the picture")
        assert page.locator('img[src="x"]').count() == 0
        page.keyboard.press("d")
        wait(lambda: page.locator(".pane").count() == 1, "one pane for two runs")
        wait(lambda: evil in page.locator(".pane .label").first.inner_text(), "the name in the comparison")
        assert page.locator('img[src="x"], #detail script').count() == 0


def test_a_run_that_goes_away_is_told(two: tuple[Path, Path, str], tmp_path: Path) -> None:
    first, second, url = two
    with browsing(url) as page:
        wait_for_picture(page, 1)
        first.rename(tmp_path / "moved")
        wait(lambda: page.locator('.run[data-state="gone"]').count() == 1, "the word that it is gone")
        assert "does not exist" in page.locator('.run[data-run="0"]').inner_text()
        (second / "status.json").write_text("{", encoding="utf-8")
        wait(lambda: page.locator('.run[data-state="broken"]').count() == 1, "the word that it is broken")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844)])
def test_nothing_is_cut_off_or_covered_at_any_width(two: tuple[Path, Path, str], width: int, height: int) -> None:
    with browsing(two[2]) as page:
        page.set_viewport_size({"width": width, "height": height})
        wait_for_picture(page)
        wait(
            lambda: page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"),
            "a page no wider than the window",
        )
        covered = page.evaluate(
            """() => {
              const shown = [...document.querySelectorAll('header button, header select, #strip input, #strip button')]
                .map((one) => [one.id || one.textContent, one.getBoundingClientRect()])
                .filter(([, box]) => box.width > 0);
              const apart = (a, b) => a.right <= b.left + 1.5 || b.right <= a.left + 1.5
                || a.bottom <= b.top + 1.5 || b.bottom <= a.top + 1.5;
              return shown.flatMap(([name, box], index) => shown.slice(index + 1)
                .filter(([, other]) => !apart(box, other)).map(([other]) => `${name} and ${other}`));
            }"""
        )
        assert covered == []
        for card in ("#convergence", "#leds", "#details"):
            box = page.locator(card).bounding_box()
            assert box is not None, f"{card} is hidden"
            assert box["height"] > 100
