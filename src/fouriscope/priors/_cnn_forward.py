"""The small network over a whole image: its weights, bands of rows, and layers shared out to the threads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import run_sliced, split

Array = npt.NDArray[Any]

SHIPPED = Path(__file__).parent / "weights" / "small_cnn.safetensors"
BAND = 512
"""Rows of phases that go through all layers together: more would only take more memory, some 64 bytes per pixel."""
LIMIT = 5.0
"""No pixel moves by more than this many σ: white noise does that once in two million pixels."""


@dataclass(frozen=True)
class Weights:
    """The filters of each layer, as ``torch`` has them: (channels out, channels in, 3, 3), and as the kernels do.

    ``about`` is what the training script wrote into the file: its version, the images and their licences, the seed.
    """

    layers: tuple[Array, ...]
    flat: tuple[Array, ...]
    about: dict[str, str]

    @property
    def sigma_range(self) -> tuple[float, float]:
        """The smallest and the largest σ of training, for images in [0, 1]."""
        low, high = json.loads(self.about["sigma_range"])
        return float(low), float(high)


@cache
def load_weights(path: Path = SHIPPED) -> Weights:
    """Read the weights that ``tools/train_denoiser.py`` wrote.

    >>> weights = load_weights()
    >>> sum(layer.size for layer in weights.layers)
    67104
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = file.metadata() or {}
            names = sorted(file.keys(), key=lambda name: (len(name), name))
            layers = tuple(np.asarray(file.get_tensor(name), np.float32) for name in names)
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(
            f"expected the weights of the small network in {path}, which cannot be read ({error}); "
            "install fouriscope again, or train them: tools/train_denoiser.py"
        ) from error
    _check(path, names, layers, about)
    flat = tuple(np.ascontiguousarray(layer.transpose(2, 3, 1, 0)).ravel() for layer in layers)
    return Weights(layers, flat, about)


def _check(path: Path, names: Sequence[str], layers: tuple[Array, ...], about: dict[str, str]) -> None:
    """The kernels do not look where they read, and the network needs its layers in their order."""
    from fouriscope.priors._cnn_kernels import CHANNELS, INPUTS, PHASES

    sizes = [INPUTS, *[CHANNELS] * (len(layers) - 1), PHASES]
    expected = [(out, into, 3, 3) for into, out in pairwise(sizes)]
    shapes = [layer.shape for layer in layers]
    if len(layers) < 2 or shapes != expected or list(names) != [f"layer{k}" for k in range(len(layers))]:
        raise InvalidInputError(
            f"expected filters layer0, layer1, … from {INPUTS} over {CHANNELS} to {PHASES} channels in {path}, got "
            f"{dict(zip(names, shapes, strict=True))}; was it written by tools/train_denoiser.py --channels {CHANNELS}?"
        )
    if not all(np.all(np.isfinite(layer)) for layer in layers) or "sigma_range" not in about:
        raise InvalidInputError(
            f"expected finite weights and the metadata of tools/train_denoiser.py in {path}, got {sorted(about)} and "
            f"{sum(int(np.sum(~np.isfinite(layer))) for layer in layers)} weights NaN or infinite; train it again"
        )


class Workspace:
    """Memory for the activations of one band, kept from call to call: to get and clear it takes as long as a layer."""

    def __init__(self, rows: int, columns: int) -> None:
        from fouriscope.priors._cnn_kernels import CHANNELS, INPUTS, PHASES

        self.shape = rows, columns
        self.phases = np.zeros((rows + 2, (columns + 2) * INPUTS), np.float32)
        self.hidden = [np.zeros((rows + 2, (columns + 2) * CHANNELS), np.float32) for _ in range(2)]
        self.noise = np.empty(rows * columns * PHASES, np.float32)
        self.means = [np.empty((rows, columns), np.float32) for _ in range(4)]

    def end_after(self, rows: int) -> None:
        """Clear the border below a band of this many rows: a taller one may have left its activations there."""
        for array in (self.phases, *self.hidden):
            array[rows + 1] = 0


def bands(rows: int, layers: int) -> list[tuple[int, int, int, int]]:
    """Cut the rows of phases into bands: (first, last, top, bottom), the rows wanted and the rows needed for them.

    A layer sees one row further up and down, a local mean several. What a band lacks there spoils one row more with
    each layer, and none of those that are wanted, so a cut does not change the result.

    >>> bands(700, layers=9)
    [(0, 350, 0, 375), (350, 700, 325, 700)]
    """
    from fouriscope.priors._cnn_means import PASSES, RADIUS

    reach = layers + 2 * PASSES * RADIUS
    pieces = split(rows, -(-rows // BAND))
    return [(first, last, max(first - reach, 0), min(last + reach, rows)) for first, last in pieces]


def workspace_for(shape: tuple[int, int], layers: int) -> Workspace:
    """Return memory for all bands of an image of this shape."""
    rows, columns = (-(-length // 2) for length in shape)
    return Workspace(max(bottom - top for _, _, top, bottom in bands(rows, layers)), columns)


def remove_noise(
    image: Array, centre: float, sigma: float, limits: tuple[float, float], weights: Weights, space: Workspace
) -> Array:
    """Return image − σ n((image − centre)/σ, 1), with n the network without its local means, kept within the limits."""
    from fouriscope.priors import _cnn_kernels as kernels

    height = image.shape[0]
    columns = space.shape[1]
    low, high = limits
    out = np.empty_like(image)
    for first, last, top, bottom in bands(-(-height // 2), len(weights.flat)):
        rows = bottom - top
        space.end_after(rows)

        def split_phases(start: int, stop: int, top: int = top) -> None:
            kernels.to_phases(image, top, centre, sigma, columns, space.phases.ravel(), start, stop)

        run_sliced(split_phases, rows)
        noise = _noise(space, rows, columns, weights)
        means = _local_means(space, rows, columns)

        def subtract(
            start: int, stop: int, begin: int = 2 * first, top: int = top, noise: Array = noise, means: Array = means
        ) -> None:
            kernels.subtract_noise(image, noise, means, top, sigma, LIMIT, low, high, out, begin + start, begin + stop)

        run_sliced(subtract, min(2 * last, height) - 2 * first)
    return out


def _noise(space: Workspace, rows: int, columns: int, weights: Weights) -> Array:
    """The network itself, on the phases that the workspace holds."""
    from fouriscope.priors._cnn_kernels import CHANNELS, INPUTS, hidden_rows, last_rows

    source, inputs = space.phases.ravel(), INPUTS
    for k, layer in enumerate(weights.flat[:-1]):
        target = space.hidden[k % 2].ravel()

        def hidden(
            start: int, stop: int, source: Array = source, inputs: int = inputs, w: Array = layer, t: Array = target
        ) -> None:
            hidden_rows(source, inputs, w, t, columns, start, stop)

        run_sliced(hidden, rows)
        source, inputs = target, CHANNELS

    run_sliced(lambda start, stop: last_rows(source, weights.flat[-1], space.noise, columns, start, stop), rows)
    return space.noise


def _local_means(space: Workspace, rows: int, columns: int) -> Array:
    """M c + M (c − M c) for the means c of the noise over each cell; see ``_cnn_means``."""
    from fouriscope.priors._cnn_means import PASSES, cell_means, mean_along, mean_down

    cells, means, rest, other = (array[:rows] for array in space.means)

    def smooth(array: Array) -> None:
        for _ in range(PASSES):
            run_sliced(lambda start, stop: mean_along(array, columns, other, start, stop), rows)
            run_sliced(lambda start, stop: mean_down(other, rows, columns, array, start, stop), rows)

    run_sliced(lambda start, stop: cell_means(space.noise, columns, cells, start, stop), rows)
    means[:] = cells
    smooth(means)
    np.subtract(cells, means, out=rest)
    smooth(rest)
    means += rest
    return means
