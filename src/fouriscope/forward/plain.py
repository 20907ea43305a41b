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
    """√w_m H_m o for each source of the LEDs."""
    indices, _ = model.sources.of(model.led_indices(leds))
    transmittance = model.on_grid("transmittance", transmittance)
    spectrum = np.fft.fft2(np.asarray(transmittance, model.complex_dtype)).astype(model.complex_dtype)
    out = np.empty((len(indices), *model.frame_shape), model.complex_dtype)
    grid = np.zeros(model.geometry.grid_shape, model.complex_dtype)
    scale = grid.size / spectrum.size
    for b, source in enumerate(indices):
        place, target = model.boxes(int(source))
        stack, index = model.pupils(indices[b : b + 1])
        grid[target] = spectrum[place] * stack[index[0]]
        out[b] = np.fft.ifft2(grid)[model.window] * scale
    return out


def adjoint(model: ForwardModel, fields: ComplexArray, leds: LEDs) -> ComplexArray:
    """Σ_m √w_m H_m† fields_m over the sources of the LEDs."""
    indices, _ = model.sources.of(model.led_indices(leds))
    fields = numbers("fields", fields)
    if fields.shape != (len(indices), *model.frame_shape):
        raise InvalidInputError(
            f"{len(indices)} fields of {model.frame_shape} pixels were expected, got shape {fields.shape}"
        )
    spectrum = np.zeros(model.object_shape, model.complex_dtype)
    padded = np.zeros(model.geometry.grid_shape, model.complex_dtype)
    for b, source in enumerate(indices):
        place, target = model.boxes(int(source))
        stack, index = model.pupils(indices[b : b + 1])
        padded[model.window] = fields[b]
        spectrum[place] += np.conj(stack[index[0]]) * np.fft.fft2(padded)[target].astype(model.complex_dtype)
    return np.fft.ifft2(spectrum).astype(model.complex_dtype)
