"""A headless Chromium that looks at the page as a person does."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

Found = TypeVar("Found")
CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
PATIENCE = 120.0

# Where CI is set, a missing browser is a failure: otherwise nobody would notice that the page is not tested.
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"),
    reason="there is no chromium; apt-get install chromium brings Debian's",
)
# Software rendering: the WebGL2 of a machine without a graphics card.
SHADERS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NO_SHADERS = ["--disable-gpu", "--disable-3d-apis"]


@contextmanager
def browsing(url: str, *, shaders: bool = True, scheme: Any = "light") -> Iterator[Page]:
    """The page at ``url``, with its first picture drawn. Errors in it, and requests to elsewhere, fail the test."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.fail("CI is set, but there is no chromium: apt-get install chromium brings Debian's")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage", *(SHADERS if shaders else NO_SHADERS)]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{url}#shaders" if shaders else url)
        yield page
        browser.close()
        assert errors == []
        assert [address for address in asked if not address.startswith((url.split("/?")[0], "blob:"))] == []


def wait(what: Callable[[], Found], words: str) -> Found:
    """Ask until the answer is true; the page's own rules forbid Playwright's way, which evaluates text."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        if time.monotonic() > end:
            raise AssertionError(f"{words} did not happen within {PATIENCE:g} s")
        time.sleep(0.05)
    return found


def wait_for_picture(page: Page, run: int = 0, other_than: str | None = None) -> str:
    """The version of the picture of ``run``, once there is one (or another one)."""
    wait(lambda: page.evaluate("() => 'fouriscope' in window"), "the page")
    found: str = wait(
        lambda: (version := page.evaluate("(run) => window.fouriscope.version(run)", run)) != other_than and version,
        f"a new picture of run {run}",
    )
    return found


def wait_until_drawn(page: Page) -> None:
    """Until the stage shows what the last keys and clicks asked for."""
    wait(lambda: page.evaluate("() => window.fouriscope.isDrawn()"), "the drawing")


def read_pixel(page: Page, row: int, column: int, pane: int = 0) -> tuple[float, str]:
    """Move the mouse to a pixel; the value that the page reads there, and its words."""
    wait_until_drawn(page)
    place = page.evaluate("([p, r, c]) => window.fouriscope.whereIs(p, r, c)", [pane, row, column])
    page.mouse.move(place["x"], place["y"])
    readout = page.locator("#readout")
    wait(
        lambda: (readout.get_attribute("data-row"), readout.get_attribute("data-column")) == (str(row), str(column)),
        f"a reading at row {row}, column {column}",
    )
    return float(readout.get_attribute("data-value") or "nan"), readout.inner_text()


def colour_at(page: Page, row: int, column: int, pane: int = 0) -> list[int]:
    """The colour on the screen, in the middle of a pixel of the image."""
    wait_until_drawn(page)
    found: list[int] = page.evaluate("([p, r, c]) => window.fouriscope.colourAt(p, r, c)", [pane, row, column])
    return found
