"""A glance at a simulated sample before its run: two sweeps of EPRY show whether a phase alone could be found."""

from __future__ import annotations

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.errors import DivergenceError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.run.assemble import build_model
from fouriscope.settings import Engine, Object, ReconstructionConfig
from fouriscope.solvers import EPRY

# The first sweep finds most of a wave. The second mends what frames at the end of the first have changed.
SWEEPS = 2
# The share of the light that is missing from the wave if the sample clearly absorbs. A phase takes none away, but its
# finest detail sends some beyond the band of the LEDs, and noise adds some. Less than this is left to the run itself,
# which knows more (:mod:`fouriscope.run.doubt`).
MISSING = 0.05
# If the sample turns aside more than this share of the light, its phase has turns. A run over phases begins flat, and
# gets lost among them or arrives late; a wave has no turns.
SCATTERED = 0.5
ABSORBS = "the sample absorbs"
HAS_TURNS = "the sample's phase has whole turns"


def why_no_phase(data: Acquisition, engine: Engine) -> str | None:
    """The reason why a sample that repeats itself should be reconstructed as a wave, or None if there is none yet.

    The wave is found without a prior or a model of noise, in the time of two passes over the frames.

    Parameters
    ----------
    data
        Frames in units of the bright field.
    engine
        What computes.

    Examples
    --------
    >>> from fouriscope.forward import ForwardModel
    >>> from fouriscope.optics import LEDArray, Optics
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = LEDArray.square(5, pitch=4e-3, height=70e-3)
    >>> model = ForwardModel(optics, leds, (24, 24), object="complex")
    >>> clear, grey = np.zeros(model.x_shape, np.float32), np.full(model.x_shape, 0.1, np.float32)
    >>> [why_no_phase(Acquisition(optics, leds, model.intensity(x)), Engine()) for x in (clear, grey)]
    [None, 'the sample absorbs']
    """
    config = ReconstructionConfig(object=Object(model="wave", margin=0), engine=engine)
    fidelity = DataFidelity.of(data, build_model(data, config), loss="amplitude")
    solver = EPRY(fidelity, AllLEDs(np.flatnonzero(fidelity.weights > 0)), decay=0.3, seed=0)
    try:
        for _ in range(SWEEPS):
            solver.step()
    except DivergenceError:
        return None
    wave = fidelity.model.transmittance(solver.x)
    light = float(np.mean(np.abs(wave) ** 2))
    if 1 - light > MISSING:
        return ABSORBS
    return HAS_TURNS if 1 - float(np.abs(wave.mean())) ** 2 / light > SCATTERED else None
