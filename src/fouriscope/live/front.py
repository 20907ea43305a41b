"""``fs.stream``: makes a live reconstruction for a microscope, to which frames are added."""

from __future__ import annotations

from typing import Any, Unpack

from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrivingFrames
from fouriscope.checks import door
from fouriscope.choices import Choices, choose
from fouriscope.errors import InvalidInputError
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.optics import Illumination, Optics, Pupil

# What needs all frames, or an end: what to do instead.
NOT_LIVE = {
    "iterations": "it runs as long as you call step or advance(iterations=…)",
    "stop": "it runs as long as you call step or advance(iterations=…)",
    "align": "an alignment needs all frames; align an earlier acquisition with fs.align and use its geometry",
}


@door
def stream(
    optics: Optics,
    illumination: Illumination,
    frame_shape: tuple[int, int],
    *,
    pupil: Pupil | None = None,
    patch_center: tuple[float, float] = (0.0, 0.0),
    weights: NDArray[Any] | None = None,
    mask: NDArray[Any] | None = None,
    periodic: bool = False,
    truth: NDArray[Any] | None = None,
    **choices: Unpack[Choices],
) -> LiveReconstruction:
    """Begin a reconstruction before its frames are there; call ``live.add(frame, led)`` when one arrives.

    Parameters
    ----------
    optics, illumination, pupil, patch_center, weights, mask, periodic, truth
        See :class:`fouriscope.Acquisition`: what is known before the first frame.
    frame_shape
        (rows, columns) of a frame. Intensities are in units of the empty bright field.
    **choices
        As in :func:`fouriscope.reconstruct`: method, prior, object, loss, batch, calibrate, start, seed… The defaults
        are those for a simulation, because the recipe for measured frames begins with an alignment, which needs all
        frames. You decide when to stop, so there is neither ``iterations`` nor ``stop``.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, frame_shape=(32, 32))
    >>> y, x = np.indices(model.object_shape) / model.object_shape[0] - 0.5
    >>> phase = 0.3 * (np.hypot(y, x) < 0.25)
    >>> camera = fs.simulate(model, phase, snr_db=40, seed=0).frames
    >>> live = fs.stream(optics, leds, (32, 32), periodic=True, batch=20, seed=0)
    >>> for led in reversed(range(len(leds))):  # in whatever order they are taken
    ...     live.add(camera.frame(led), led)
    ...     record = live.step()  # None until there is a bright-field frame
    >>> record = live.advance(iterations=40)
    >>> live.outlook().sentence
    'all frames have arrived'
    >>> bool(live.result().snr(phase).aligned > 10)
    True
    """
    acquisition = Acquisition(
        optics,
        illumination,
        ArrivingFrames((len(illumination), *frame_shape)),
        pupil=Pupil() if pupil is None else pupil,
        patch_center=patch_center,
        weights=weights,
        mask=mask,
        periodic=periodic,
        truth=truth,
    )
    for name, instead in NOT_LIVE.items():
        if name in choices:
            raise InvalidInputError(f"fs.stream does not take {name}: {instead}")
    chosen = choose(acquisition, measured=False, **choices)
    return LiveReconstruction(acquisition, chosen.config, **chosen.objects)
