"""The pupil P: a hard disc of radius NA/λ, and the phase or transmission that the lens adds inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.optics.objective import Optics, require_finite, require_within
from fouriscope.optics.zernike_polynomials import noll_to_nm, zernike, zernike_in_powers

ComplexArray = NDArray[np.complex128]

# f = m·du divided by du again need not give m to the last bit; nearer than this to a bin means on the bin.
_ON_A_BIN = 1e-9
# How many coefficients the repr of a pupil shows.
TOLD = 8


@door_class
@dataclass(frozen=True, eq=False, repr=False)
class Pupil:
    """The complex transmission of the objective over spatial frequency.

    P(f) = A(f) · exp(i Σ_j c_j Z_j(ρ, θ) + i 2π z (√((n/λ)² − |f|²) − n/λ))   for |f| ≤ NA/λ, and exactly 0 beyond,

    with ρ = |f|·λ/NA and θ the angle of f from x towards y. The edge is never softened: LEDs whose direct light just
    misses the pupil give dark frames, and a half-transmitting edge would add a background that nobody measured.

    Parameters
    ----------
    zernike
        Noll index j → coefficient c_j in radians RMS, e.g. ``{11: 0.3}`` for spherical aberration.
    defocus
        z in metres. The axis points away from the objective: positive z means that the sample lies at +z from the focal
        plane, further from the objective, so that its light travels the distance z before it reaches that plane.
    array
        A: a complex pupil on the frequency grid of the frame (margins included), centred as by ``fftshift`` with zero
        frequency at index n//2, e.g. from a calibration. It multiplies the analytic part. Between bins it is
        interpolated linearly, and only its values at bins inside the disc are ever used.

    Examples
    --------
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> edge = optics.cutoff
    >>> abs(Pupil(defocus=10e-6).evaluate(0.0, [0.0, edge, 1.000001 * edge], optics)).round(12).tolist()
    [1.0, 1.0, 0.0]
    >>> Pupil({5: 0.4, 7: -0.3}, defocus=10e-6)
    Pupil: Zernike 5: 0.4, 7: -0.3 rad, defocus 10 µm
    """

    zernike: Mapping[int, float] = field(default_factory=dict)
    defocus: float = 0.0
    array: ComplexArray | None = None
    _extended: dict[tuple[float, float, float], ComplexArray] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for j, coefficient in self.zernike.items():
            noll_to_nm(j)
            size = abs(require_finite(f"Zernike coefficient {j}", coefficient))
            require_within(f"the size of Zernike coefficient {j}", size, 0, 1e4, "radians RMS")
        # A plain dict, not a read-only proxy, because a pupil travels to the workers of a cluster.
        object.__setattr__(self, "zernike", {int(j): float(c) for j, c in sorted(self.zernike.items())})
        object.__setattr__(self, "defocus", require_finite("defocus", self.defocus))
        require_within("the size of defocus", abs(self.defocus), 0, 1, "metres: 10 µm is 10e-6")
        if self.array is not None:
            array = np.array(self.array, dtype=np.complex128)
            if array.ndim != 2:
                raise InvalidInputError(f"a pupil array must have shape (rows, columns), got shape {array.shape}.")
            if not np.isfinite(array).all():
                raise InvalidInputError("a pupil array must be finite; put 0 where the pupil is opaque or unknown.")
            array.setflags(write=False)
            object.__setattr__(self, "array", array)

    def __repr__(self) -> str:
        told = [f"{j}: {c:.3g}" for j, c in self.zernike.items() if c]
        if told:
            told = [f"Zernike {', '.join(told[:TOLD])}{f' and {len(told) - TOLD} more' if told[TOLD:] else ''} rad"]
        if self.defocus:
            told.append(f"defocus {self.defocus * 1e6:.3g} µm")
        if self.array is not None:
            told.append("array of {} × {}".format(*self.array.shape))
        return f"Pupil: {', '.join(told) or 'clear'}"

    @property
    def is_clear(self) -> bool:
        """Whether the pupil is the bare disc, without any aberration."""
        return self.array is None and self.defocus == 0 and not any(self.zernike.values())

    def phase_in_powers(self) -> NDArray[np.float64]:
        """Σ_j c_j Z_j as coefficients a[p, q] of (fy λ/NA)^p (fx λ/NA)^q; (1, 1) zero if there is no Zernike term."""
        terms = [c * zernike_in_powers(*noll_to_nm(j)) for j, c in self.zernike.items() if c]
        powers = np.zeros((max((len(term) for term in terms), default=1),) * 2)
        for term in terms:
            powers[: len(term), : len(term)] += term
        return powers

    def evaluate(
        self, fy: ArrayLike, fx: ArrayLike, optics: Optics, frequency_step: tuple[float, float] | None = None
    ) -> ComplexArray:
        """P at exactly the spatial frequencies (``fy``, ``fx``), in cycles per metre, of shapes that broadcast.

        ``frequency_step`` = (dfy, dfx), cycles per metre from bin to bin of the frame's grid, is needed only by a pupil
        with an ``array``.
        """
        rows, columns = np.broadcast_arrays(np.asarray(fy, dtype=np.float64), np.asarray(fx, dtype=np.float64))
        inside = optics.passes(np.hypot(rows, columns) * optics.wavelength)
        values = np.zeros(rows.shape, dtype=np.complex128)
        values[inside] = 1
        if self.is_clear:
            return values
        y, x = rows[inside], columns[inside]
        values[inside] = np.exp(1j * self._analytic_phase(y, x, optics))
        if self.array is not None:
            values[inside] *= self._interpolate(y, x, optics, frequency_step)
        return values

    def _analytic_phase(self, y: NDArray[np.float64], x: NDArray[np.float64], optics: Optics) -> NDArray[np.float64]:
        radius = np.hypot(y, x)
        phase = np.zeros_like(radius)
        for j, coefficient in self.zernike.items():
            phase += coefficient * zernike(*noll_to_nm(j), radius / optics.cutoff, np.arctan2(y, x))
        if self.defocus:
            wavenumber = optics.medium_index / optics.wavelength
            # √(w² − k²) − w, written so that nothing cancels for the small k of a low-power objective.
            axial = -(radius**2) / (np.sqrt(wavenumber**2 - radius**2) + wavenumber)
            phase += 2 * np.pi * self.defocus * axial
        return phase

    def _interpolate(
        self, y: NDArray[np.float64], x: NDArray[np.float64], optics: Optics, step: tuple[float, float] | None
    ) -> ComplexArray:
        if step is None or len(step) != 2 or not all(0 < s < np.inf for s in step):
            raise InvalidInputError(
                f"a pupil with an array needs frequency_step = (dfy, dfx) in cycles per metre, got {step!r}; "
                "pass Geometry.frequency_step."
            )
        table = self.table(optics, step)
        row, row_weight = _bin_and_fraction(y / step[0] + table.shape[0] // 2, table.shape[0])
        col, col_weight = _bin_and_fraction(x / step[1] + table.shape[1] // 2, table.shape[1])
        next_row = np.minimum(row + 1, table.shape[0] - 1)
        next_col = np.minimum(col + 1, table.shape[1] - 1)
        upper = (1 - col_weight) * table[row, col] + col_weight * table[row, next_col]
        lower = (1 - col_weight) * table[next_row, col] + col_weight * table[next_row, next_col]
        return np.asarray((1 - row_weight) * upper + row_weight * lower, dtype=np.complex128)

    def table(self, optics: Optics, step: tuple[float, float]) -> ComplexArray:
        """What is interpolated: the array, each bin outside the disc replaced by the nearest one inside it."""
        assert self.array is not None
        key = (float(step[0]), float(step[1]), optics.cutoff)
        expected = tuple(round(1 / (s * optics.pixel)) for s in step)
        if self.array.shape != expected:
            raise InvalidInputError(
                f"the pupil array must lie on the frame's frequency grid, margins included: expected shape "
                f"{expected}, got {self.array.shape}; crop or resample the array."
            )
        table = self._extended.get(key)
        if table is None:
            table = _extend_beyond_disc(self.array, step, optics.cutoff)
            # One entry is enough: the LEDs of a model share their grid, and a calibration makes new pupils.
            self._extended.clear()
            self._extended[key] = table
        return table


def _extend_beyond_disc(array: ComplexArray, step: tuple[float, float], cutoff: float) -> ComplexArray:
    from scipy.ndimage import distance_transform_edt

    fy, fx = ((np.arange(size) - size // 2) * s for size, s in zip(array.shape, step, strict=True))
    outside = np.hypot(fy[:, None], fx[None, :]) > cutoff
    nearest = distance_transform_edt(outside, sampling=step, return_distances=False, return_indices=True)
    return np.asarray(array[tuple(nearest)], dtype=np.complex128)


def _bin_and_fraction(position: NDArray[np.float64], size: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    whole = np.rint(position)
    position = np.clip(np.where(np.abs(position - whole) < _ON_A_BIN, whole, position), 0, size - 1)
    lower = np.floor(position)
    return lower.astype(np.intp), position - lower
