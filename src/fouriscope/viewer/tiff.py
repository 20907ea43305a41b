"""An image of the page as a TIFF to take away, with its scale."""

from __future__ import annotations

import io

from fouriscope.viewer.images import ShownImage

MICROMETRES_IN_A_CENTIMETRE = 1e4


def tiff_of(image: ShownImage, title: str) -> bytes:
    """32-bit float. Lengths stand in the resolution tags; what a step in NA is, in the description."""
    import tifffile

    step_y, step_x = image.step
    scale: dict[str, object] = {}
    if image.axis_unit == "um":
        scale = {
            "resolution": (MICROMETRES_IN_A_CENTIMETRE / step_x, MICROMETRES_IN_A_CENTIMETRE / step_y),
            "resolutionunit": "CENTIMETER",
        }
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        image.values,
        photometric="minisblack",
        description=(
            f"{title.encode('ascii', 'replace').decode()}; values in {image.unit or 'units of the bright field'}; "
            f"a pixel is {step_y!r} {image.axis_unit} high and {step_x!r} {image.axis_unit} wide"
        ),
        metadata=None,
        software="fouriscope",
        **scale,
    )
    return buffer.getvalue()
