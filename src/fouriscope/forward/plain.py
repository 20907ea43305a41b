"""H_i and its adjoint, written plainly: the compiled loops are tested against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fouriscope.checks import numbers
from fouriscope.errors import InvalidInputError
from fouriscope.forward.grids import LEDs
from fouriscope.forward.objects import ComplexArray

if TYPE_CHECKING:
    from fouriscope.forward.model import ForwardModel


def apply(model: ForwardModel, transmittance: ComplexArray, leds: LEDs) -> ComplexArray:
    """H_i o for each LED."""
    indices = model.led_indices(leds)
    transmittance = model.on_grid("transmittance", transmittance)
    spectrum = np.fft.fft2(np.asarray(transmittance, model.complex_dtype)).astype(model.complex_dtype)
    out = np.empty((len(indices), *model.frame_shape), model.complex_dtype)
    grid = np.zeros(model.geometry.grid_shape, model.complex_dtype)
    scale = grid.size / spectrum.size
    for b, led in enumerate(indices):
        source, target = model.boxes(int(led))
        stack, index = model.pupils(indices[b : b + 1])
        grid[target] = spectrum[source] * stack[index[0]]
        out[b] = np.fft.ifft2(grid)[model.window] * scale
    return out


def adjoint(model: ForwardModel, fields: ComplexArray, leds: LEDs) -> ComplexArray:
    """Σ_i H_i† fields_i."""
    indices = model.led_indices(leds)
    fields = numbers("fields", fields)
    if fields.shape != (len(indices), *model.frame_shape):
        raise InvalidInputError(
            f"{len(indices)} fields of {model.frame_shape} pixels were expected, got shape {fields.shape}"
        )
    spectrum = np.zeros(model.object_shape, model.complex_dtype)
    padded = np.zeros(model.geometry.grid_shape, model.complex_dtype)
    for b, led in enumerate(indices):
        source, target = model.boxes(int(led))
        stack, index = model.pupils(indices[b : b + 1])
        padded[model.window] = fields[b]
        spectrum[source] += np.conj(stack[index[0]]) * np.fft.fft2(padded)[target].astype(model.complex_dtype)
    return np.fft.ifft2(spectrum).astype(model.complex_dtype)
