"""One pass over 293 LEDs, one thread: our gradients beside the usual sequential method (EPRY's) written in NumPy."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import microscope
from benchmarks.report import bar, table
from benchmarks.timing import interleaved
from fouriscope.forward import ForwardModel
from fouriscope.parallel import threads

LIMIT = 0.035
TURNS = 15


def epry_pass(
    spectrum: NDArray[Any], pupil: NDArray[Any], corners: NDArray[np.int64], amplitudes: NDArray[Any]
) -> None:
    """Each LED in turn: crop, pupil, inverse FFT, measured modulus, FFT, update of the object's spectrum.

    It gets every plain favour: amplitudes √y and the pupil are computed before, the spectrum is kept with DC in the
    middle so that nothing is shifted (the ramp that leaves on the field does not change its modulus), and the pupil is
    known, so it is not updated.
    """
    height, width = pupil.shape
    step = np.conj(pupil) / np.max(np.abs(pupil)) ** 2
    for (row, column), amplitude in zip(corners, amplitudes, strict=True):
        crop = spectrum[row : row + height, column : column + width]
        exit_wave = crop * pupil
        field = np.fft.ifft2(exit_wave)
        field *= amplitude / (np.abs(field) + np.float32(1e-12))
        crop += step * (np.fft.fft2(field) - exit_wave)


def epry_pass_as_published(
    spectrum: NDArray[Any], pupil: NDArray[Any], corners: NDArray[np.int64], amplitudes: NDArray[Any]
) -> None:
    """The same as it is usually written: DC is shifted back and forth, and the pupil is updated too."""
    height, width = pupil.shape
    for (row, column), amplitude in zip(corners, amplitudes, strict=True):
        crop = spectrum[row : row + height, column : column + width]
        before = crop.copy()
        exit_wave = before * pupil
        field = np.fft.ifft2(np.fft.ifftshift(exit_wave))
        replaced = amplitude * np.exp(1j * np.angle(field))
        change = np.fft.fftshift(np.fft.fft2(replaced)) - exit_wave
        crop += np.conj(pupil) / np.max(np.abs(pupil)) ** 2 * change
        pupil += np.conj(before) / np.max(np.abs(before)) ** 2 * change


def epry_inputs(model: ForwardModel, x: NDArray[Any], frames: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """(spectrum, pupil, corners, amplitudes) as :func:`epry_pass` wants them; directions are rounded to whole bins."""
    scale = np.float32(frames[0].size / np.prod(model.object_shape))
    spectrum = np.fft.fftshift(np.fft.fft2(model.transmittance(x))) * scale
    rows, columns = model.frame_shape
    step_y, step_x = model.geometry.frequency_step
    y = (np.arange(rows) - rows // 2)[:, None] * step_y
    z = (np.arange(columns) - columns // 2)[None, :] * step_x
    pupil = (np.hypot(y, z) <= model.optics.na / model.optics.wavelength).astype(np.complex64)
    middle = np.array(model.object_shape) // 2 - np.array(model.frame_shape) // 2
    return spectrum.astype(np.complex64), pupil, model.geometry.whole_bins + middle, np.sqrt(frames)


def main() -> None:
    model = ForwardModel(microscope.optics(), microscope.leds(), (64, 64), object_shape=(256, 256))
    fidelity, x = microscope.fidelity(model)
    frames = model.intensity(np.float32(0.9) * x)
    inputs = epry_inputs(model, x, frames)
    own_inputs = tuple(array.copy() for array in inputs)
    minibatches = np.array_split(np.random.default_rng(2).permutation(len(model)), 5)

    def online() -> None:
        for leds in minibatches:
            fidelity.gradient(x, leds)

    calls = {
        "all LEDs in one gradient": lambda: fidelity.gradient(x),
        "5 minibatches, 5 gradients": online,
        "NumPy EPRY, lean, object only": lambda: epry_pass(*inputs),
        "NumPy EPRY, as published": lambda: epry_pass_as_published(*own_inputs),
    }
    with threads(1):
        seconds = interleaved(calls, TURNS, time.process_time)
    epry = seconds["NumPy EPRY, lean, object only"]
    rows = []
    for name, cpu in seconds.items():
        cells = ["", ""] if "EPRY" in name else bar(f"epoch, {name}", cpu, LIMIT)
        rows.append([name, f"{cpu:.4f}", *cells, f"{epry / cpu:.1f} ×"])
    title = f"One pass over {len(model)} LEDs, object 256², frames 64², one thread"
    table(title, ["method", "CPU-seconds", "bar", "", "lean EPRY / this"], rows)


if __name__ == "__main__":
    main()
