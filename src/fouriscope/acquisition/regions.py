"""From where the LEDs are seen: the centre of a part of the frames, and how it moves over the field."""

from __future__ import annotations

from fouriscope.acquisition.stored import Region
from fouriscope.optics import Illumination


def center_of_region(
    center: tuple[float, float],
    region: Region,
    whole: tuple[int, int],
    pixel: float,
    illumination: Illumination,
    curvature: float | None = None,
) -> tuple[float, float]:
    """(y, x) in metres of the centre of a ``region`` of frames of shape ``whole``, whose own centre is ``center``.

    Directions without a height are known in one place only, so with them the centre stays. With the ``curvature`` c of
    the light, the centre is from where a telecentric objective would see the LEDs as they are seen: c · height times as
    far away.

    Parameters
    ----------
    center
        (y, x) of the centre of whole frames, from the optical axis, in metres.
    region
        (row, column, height, width) in frame pixels.
    whole
        (rows, columns) of a whole frame.
    pixel
        Size of a frame pixel at the sample, in metres.
    illumination
        The LEDs.
    curvature
        ``wave_curvature`` of the optics.

    Examples
    --------
    >>> from fouriscope.optics import LEDArray
    >>> leds = LEDArray.square(3, pitch=4e-3, height=0.1)
    >>> center_of_region((0.0, 0.0), (0, 48, 64, 16), (64, 64), 1e-6, leds)
    (0.0, 2.4e-05)
    >>> center_of_region((0.0, 0.0), (0, 48, 64, 16), (64, 64), 1e-6, leds, curvature=15.0)
    (0.0, 3.6e-05)
    """
    if getattr(illumination, "height", None) is None:
        return center
    row, column, height, width = region
    step = pixel * field_scale(illumination, curvature)
    return (
        center[0] + (row + (height - whole[0]) / 2) * step,
        center[1] + (column + (width - whole[1]) / 2) * step,
    )


def field_scale(illumination: Illumination, curvature: float | None) -> float:
    """How much directions change over the field, beside what the height of LEDs says: c · height, 1 if c is unknown.

    Parameters
    ----------
    illumination
        The LEDs. Those without a height give 1.
    curvature
        c in 1/m: at the distance r from the middle of the field, directions are k − c r.

    Examples
    --------
    >>> from fouriscope.optics import LEDArray
    >>> field_scale(LEDArray.square(3, pitch=4e-3, height=0.1), 5.0)
    0.5
    """
    height: float | None = getattr(illumination, "height", None)
    return 1.0 if curvature is None or height is None else curvature * height
