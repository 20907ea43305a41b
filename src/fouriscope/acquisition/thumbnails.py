"""Small pictures for notebooks: an image or a map of LEDs as a PNG inside the page itself."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Pixels of a picture's longer side; a larger image is thinned out, which is faster than averaging it.
SIDE = 256
# Gray levels of the map: what is not lit, dark field, bright field.
GROUND, DARK, BRIGHT = 20, 110, 255


def thinned(image: NDArray[Any]) -> NDArray[Any]:
    """Every n-th row and column, so that no side has more than 256 pixels.

    >>> thinned(np.zeros((1000, 300))).shape
    (250, 75)
    """
    step = max(1, -(-max(image.shape) // SIDE))
    return image[::step, ::step]


def image_uri(image: NDArray[Any]) -> str:
    """``image`` in gray, from the darkest to the brightest of its central 99.8 %, as a ``data:`` address.

    Values that are not finite are black, and so is an image of one value.

    >>> image_uri(np.eye(8))[:22]
    'data:image/png;base64,'
    """
    values = np.asarray(thinned(image), np.float64)
    finite = np.isfinite(values)
    low, high = np.percentile(values[finite], [0.1, 99.9]) if finite.any() else (0.0, 0.0)
    scaled = (np.where(finite, values, low) - low) / (high - low) if high > low else np.zeros_like(values)
    return _png_uri(np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8))


def led_map_uri(na: NDArray[Any], objective_na: float) -> str:
    """The LEDs as they lie around the axis, +x to the right and +y down as in a frame; bright field is brighter."""
    from PIL import Image, ImageDraw

    sizes = np.hypot(na[:, 0], na[:, 1])
    reach = 1.1 * max(float(sizes.max(initial=0.0)), objective_na)
    spot = max(1.5, 0.3 * SIDE / np.sqrt(max(len(na), 1)))  # some room between LEDs, however many there are
    picture = Image.new("L", (SIDE, SIDE), GROUND)
    pen = ImageDraw.Draw(picture)

    def circle(y: float, x: float, radius: float, **colours: int) -> None:
        row, column = ((1 + part / reach) * SIDE / 2 for part in (y, x))
        pen.ellipse((column - radius, row - radius, column + radius, row + radius), **colours)

    for (y, x), size in zip(na, sizes, strict=True):
        circle(y, x, spot / 2, fill=BRIGHT if size <= objective_na else DARK)
    circle(0, 0, objective_na / reach * SIDE / 2, outline=BRIGHT)
    return _png_uri(np.asarray(picture))


def page(text: str, pictures: Mapping[str, Callable[[], str]]) -> str:
    """HTML of some pictures, by their captions, and of the ``text`` of an object.

    A notebook shows it whenever an object is the last line of a cell, so a picture that cannot be made is left out:
    a frame that has not arrived, say, or a file that is gone.

    >>> page("a < b", {"nothing": lambda: 1 / 0})
    '<div></div><pre>a &lt; b</pre>'
    """
    figures = ""
    for caption, picture in pictures.items():
        try:
            address = picture()
        except Exception:  # noqa: BLE001  (whatever is wrong with the data, looking at an object must not raise)
            continue
        figures += (
            '<figure style="display:inline-block;margin:0 1em 0 0">'
            f'<img src="{address}" style="width:{SIDE}px;image-rendering:pixelated" alt="{html.escape(caption)}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )
    return f"<div>{figures}</div><pre>{html.escape(text)}</pre>"


def _png_uri(gray: NDArray[np.uint8]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(gray).save(buffer, "png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
