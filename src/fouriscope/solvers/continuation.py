"""What may lie beyond the frames: the margin of an estimate, filled with a smooth continuation of what they show."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray

# The continuation is smoothed over this share of the margin's width (a standard deviation). Mirrored detail would be
# wrong, and hard to forget: the frames see little of the margin.
SMOOTHED = 0.25


def continued(model: ForwardModel, x: RealArray) -> RealArray:
    """``x`` with another margin: what lies within the frames' window, mirrored at its border and smoothed.

    Light from the margin reaches only the borders of frames, so many iterations pass until it is found there. A
    margin that is still as empty as a flat start lies beside the window like a step, and its light is missing inside.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(5, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, (16, 16), object="wave", margin=4)
    >>> x = np.zeros(model.x_shape, model.dtype)
    >>> x[:, *model.geometry.object_window] = 0.3
    >>> bool(np.allclose(continued(model, x), 0.3))
    True
    """
    window = (slice(None), *model.geometry.object_window)
    inside = x[window]
    widths = [(cut.start, size - cut.stop) for cut, size in zip(window[1:], x.shape[1:], strict=True)]
    smooth = gaussian_filter(
        np.pad(inside, [(0, 0), *widths], mode="symmetric"), [0.0, *(SMOOTHED * max(width) for width in widths)]
    )
    smooth[window] = inside
    return np.asarray(smooth)
