"""The page in headless Chromium: limits to drag, statistics, lengths, summaries, signs of work and of mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.viewer.browser import browsing, needs_chromium, wait, wait_for_picture, wait_until_drawn
from tests.viewer.served import real_run, running_server, show, written_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [needs_chromium, pytest.mark.slow]
WIDTHS = [(1440, 900), (1024, 768), (390, 844)]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A written run, and the address of its page."""
    run = written_run(tmp_path / "run", seed=3)
    with running_server([run]) as server:
        yield run, server.url


@pytest.fixture(scope="module")
def reconstructed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a real run, with a verdict."""
    run = real_run(tmp_path_factory.mktemp("real"), verdict={"enabled": True})
    with running_server([run]) as server:
        yield server.url


def limits(page: Page) -> list[float]:
    return [float(page.input_value(box)) for box in ("#low", "#high")]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def drag_over_image(page: Page, start: tuple[int, int], end: tuple[int, int]) -> None:
    """From the middle of one pixel (row, column) to that of another."""
    page.locator("#stage").scroll_into_view_if_needed()
    places = [page.evaluate("([r, c]) => window.fouriscope.whereIs(0, r, c)", list(at)) for at in (start, end)]
    drag(page, *((place["x"], place["y"]) for place in places))


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_limits_are_dragged_along_the_histogram(one: tuple[Path, str], width: int, height: int) -> None:
    with browsing(one[1]) as page:
        page.set_viewport_size({"width": width, "height": height})
        wait_for_picture(page)
        wait_until_drawn(page)
        low, high = limits(page)
        handle = page.locator('.limit[data-end="low"]')
        handle.scroll_into_view_if_needed()
        box, whole = handle.bounding_box(), page.locator("#histogram").bounding_box()
        assert box is not None
        assert whole is not None
        middle = box["x"] + box["width"] / 2, box["y"] + 8
        drag(page, middle, (whole["x"] + whole["width"] / 2, middle[1]))
        wait(lambda: limits(page)[0] > low, "the lower limit to follow")
        assert limits(page)[1] == high
        assert low < limits(page)[0] < high
        assert page.get_attribute("#auto", "aria-pressed") == "false"
        drag(page, (whole["x"] + whole["width"] / 2, middle[1]), (whole["x"] + whole["width"] + 50, middle[1]))
        assert limits(page)[0] < high, "it stops before the other"
        page.click("#auto")
        wait(lambda: limits(page) == [low, high], "the limits of the data")
        handle.focus()
        page.keyboard.press("ArrowRight")
        wait(lambda: low < limits(page)[0] < low + 0.1 * (high - low), "a small step with a key")


def test_the_histogram_counts_what_is_there(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    with running_server([run]) as server, browsing(server.url) as page:
        wait_for_picture(page)
        wait_until_drawn(page)
        filled = page.evaluate(
            """() => {
              const canvas = document.getElementById('colours');
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height - 8);
              const columns = new Array(canvas.width).fill(0);
              for (let i = 0; i < data.length / 4; i++) if (data[4 * i + 3] > 100) columns[i % canvas.width] += 1;
              return columns;
            }"""
        )
    heights = np.array(filled, float)
    middle = len(heights) // 2
    assert heights[middle - 20 : middle + 20].mean() > 3 * max(heights[:10].mean(), heights[-10:].mean(), 0.5), (
        "normal numbers are mostly in the middle"
    )


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_a_rectangle_has_statistics_and_a_size(one: tuple[Path, str], width: int, height: int) -> None:
    phase = show(one[0], seed=4).phase
    with browsing(one[1]) as page:
        page.set_viewport_size({"width": width, "height": height})
        wait_for_picture(page)
        wait_until_drawn(page)
        page.click('[data-tool="region"]')
        drag_over_image(page, (8, 10), (20, 34))
        wait(lambda: page.locator("#detail table.numbers").count(), "the statistics")
        assert page.evaluate("() => window.fouriscope.state.view.x") == 0.5, "the image stays"
        part = phase[8:21, 10:35].astype(float)
        numbers = [float(cell) for cell in page.locator("#detail td").all_inner_texts()[1:]]
        assert numbers == pytest.approx([part.mean(), part.std(), part.min(), part.max()], rel=1e-3, abs=1e-4)
        assert page.locator("#detail .size").inner_text() == "5 µm × 2.6 µm, 25 × 13 pixels"


def test_a_line_has_a_length(one: tuple[Path, str]) -> None:
    with browsing(one[1]) as page:
        wait_for_picture(page)
        wait_until_drawn(page)
        page.click('[data-tool="line"]')
        drag_over_image(page, (5, 5), (35, 45))
        wait(lambda: page.locator("#detail canvas.plot").count(), "the profile")
        assert page.locator("#detail-note").inner_text() == "10 µm", "30 down and 40 across, of 0.2 µm"


@pytest.mark.parametrize(
    ("typed", "wrong", "words"),
    [
        (("", "1"), ("true", "false"), "must be a number"),
        (("0", "a lot"), ("false", "true"), "must be a number"),
        (("2", "1"), ("true", "true"), "less than the upper"),
    ],
)
def test_wrong_limits_are_marked(
    one: tuple[Path, str], typed: tuple[str, str], wrong: tuple[str, str], words: str
) -> None:
    with browsing(one[1]) as page:
        wait_for_picture(page)
        wait_until_drawn(page)
        page.fill("#low", typed[0])
        page.fill("#high", typed[1])
        page.keyboard.press("Enter")
        wait(lambda: words in page.locator("#scale-problem").inner_text(), "what is wrong")
        assert tuple(page.get_attribute(box, "aria-invalid") for box in ("#low", "#high")) == wrong
        assert (page.input_value("#low"), page.input_value("#high")) == typed, "to be mended"
        page.fill("#low", "-1,5")
        page.fill("#high", "1")
        page.keyboard.press("Enter")
        wait(lambda: page.locator("#scale-problem").is_hidden(), "the end of the mark")
        assert page.get_attribute("#low", "aria-invalid") == "false"
        wait(lambda: page.input_value("#low") == "-1.5", "the number as the page writes it")
        assert page.evaluate("() => window.fouriscope.state.limits.phase") == [-1.5, 1]


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_a_summary_first_and_the_file_behind_a_click(reconstructed: str, width: int, height: int) -> None:
    with browsing(reconstructed) as page:
        page.set_viewport_size({"width": width, "height": height})
        wait_for_picture(page)
        wait(lambda: page.locator("#detail .summary").count(), "the summary")
        words = page.locator("#detail").inner_text()
        assert "513 nm" in words
        assert "72 × 72 pixels of 0.2659 µm" in words
        assert "[solver]" not in words
        page.click("button.turn")
        wait(lambda: page.locator("#detail pre").count(), "the file")
        assert "[solver]" in page.locator("#detail pre").inner_text()
        page.click("button.turn")
        wait(lambda: page.locator("#detail .summary").count(), "the summary again")


def test_the_verdict_is_told(reconstructed: str) -> None:
    with browsing(reconstructed) as page:
        verdict = page.locator(".run .verdict")
        wait(verdict.count, "the verdict")
        level = verdict.get_attribute("data-level")
        assert level in ("good", "doubtful", "bad", "not judged")
        assert verdict.inner_text().lower().startswith(level)


def test_leds_show_their_misfit_beside_their_noise(reconstructed: str) -> None:
    with browsing(reconstructed) as page:
        wait(lambda: page.locator("#led-scale").is_visible(), "the colour bar")
        low, high = (
            float(page.locator(f"#led-{end}").inner_text().removesuffix(" × noise")) for end in ("low", "high")
        )
        assert low <= 1
        assert high >= 2
        page.locator('circle.led[data-led="24"]').hover()
        assert "× what noise leaves" in page.locator("#led-note").inner_text()
        page.select_option("#led-colour", "weight")
        wait(lambda: "noise" not in page.locator("#led-high").inner_text(), "another scale")


def test_a_sign_while_a_frame_is_computed(reconstructed: str) -> None:
    with browsing(reconstructed) as page:
        wait_for_picture(page)
        wait(lambda: page.locator("circle.led").count() == 49, "the map of the LEDs")
        held: list[Any] = []
        page.route("**/led/24/predicted", lambda route: held.append(route))
        page.click('circle.led[data-led="24"]')
        wait(lambda: held, "the request")
        assert page.get_attribute("#detail", "aria-busy") == "true"
        assert page.locator("#details.busy").count() == 1
        assert "computing the frame of LED 24" in page.locator("#detail-note").inner_text()
        held[0].continue_()
        wait(lambda: page.locator('#frames[data-led="24"] canvas').count() == 3, "three frames")
        wait(lambda: page.get_attribute("#detail", "aria-busy") == "false", "the end of the sign")


@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_figures_and_frames_enlarge(reconstructed: str, width: int, height: int) -> None:
    with browsing(reconstructed) as page:
        page.set_viewport_size({"width": width, "height": height})
        wait_for_picture(page)
        page.click('[data-tab="figures"]')
        small = page.locator("#detail img").first
        wait(small.bounding_box, "the figure")
        page.click("#detail button.enlarges")
        large = page.locator("#large-picture img")
        wait(large.is_visible, "the large figure")
        box = wait(large.bounding_box, "its size")
        assert box is not None
        assert 0 < box["width"] <= width
        page.keyboard.press("Escape")
        wait(lambda: page.locator("#large").is_hidden(), "its end")
        wait(lambda: page.locator("circle.led").count() == 49, "the map of the LEDs")
        page.click('circle.led[data-led="24"]')
        wait(lambda: page.locator("#frames canvas").count() == 3, "three frames")
        page.locator("#frames button.enlarges").first.click()
        wait(page.locator("#large-picture canvas").is_visible, "the large frame")
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
