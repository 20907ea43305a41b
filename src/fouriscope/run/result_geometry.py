"""Where the light came from and through which pupil it went, as a reconstruction used or recovered it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Adjusted, Directions, LEDArray, Multiplexed
from fouriscope.optics._points import told_of_directions
from fouriscope.optics.die import DieShape
from fouriscope.optics.patterns import told_of_patterns

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ResultGeometry:
    """The geometry of the model that explains the frames; after a calibration, the calibrated one.

    Attributes
    ----------
    na
        (N, 2) directions (na_y, na_x) of the LEDs as seen from the patch; for a frame with several LEDs, that of the
        one nearest to the axis.
    bright_field
        (N,) whether the direct light of each LED passes the pupil.
    wavelength, objective_na
        λ in metres, and NA.
    patch_center
        (y, x) in metres of the patch, from the optical axis.
    margin
        Frame pixels on every side that were estimated but not measured, and are not part of the result.
    zernike, defocus
        Aberrations of the pupil: Noll index → radians RMS, and metres. The array ``Result.pupil`` has the rest.
    positions, height, rotation, offset
        Those of an :class:`~fouriscope.LEDArray`: (N, 2) metres, metres, radians and (y, x) metres; otherwise None.
    slide
        (thickness in metres, index) of the glass slide, or None.
    die, die_shape
        How large the LEDs are, in metres, and "square" or "round"; 0 is a point.
    gains
        (N,) recovered intensity of each LED, 1 as assumed; None if they were not estimated.
    nominal_na
        (N, 2) directions before a calibration, or None.
    wave_curvature
        Curvature of the light in 1/m (:class:`~fouriscope.Optics`), or None.
    bandwidth
        Full width at half maximum of the light around λ, in metres; 0 is one wavelength, or a spectrum.
    patterns, led_na
        With :class:`~fouriscope.Multiplexed`: (N, L) how bright each LED is in each frame, and (L, 2) the directions of
        the LEDs; ``positions`` are then those of the L LEDs. None if each frame has its own LED.
    """

    na: FloatArray
    bright_field: NDArray[np.bool_]
    wavelength: float
    objective_na: float
    patch_center: tuple[float, float]
    margin: int
    zernike: dict[int, float]
    defocus: float
    positions: FloatArray | None = None
    height: float | None = None
    rotation: float | None = None
    offset: tuple[float, float] | None = None
    slide: tuple[float, float] | None = None
    die: float = 0.0
    die_shape: DieShape = "square"
    gains: FloatArray | None = None
    nominal_na: FloatArray | None = None
    bandwidth: float = 0.0
    wave_curvature: float | None = None
    patterns: FloatArray | None = None
    led_na: FloatArray | None = None

    def __post_init__(self) -> None:
        count = len(self.na)
        for name, shape in (("na", (count, 2)), ("bright_field", (count,)), ("gains", (count,))):
            _check(name, getattr(self, name), shape)
        leds = count if self.patterns is None else np.shape(self.patterns)[1]
        _check("positions", self.positions, (leds, 2))
        _check("patterns", self.patterns, (count, leds))
        _check("led_na", self.led_na, (leds, 2))
        _check("nominal_na", self.nominal_na, (count, 2))

    @classmethod
    def of(
        cls, model: ForwardModel, *, gains: ArrayLike | None = None, nominal_na: ArrayLike | None = None
    ) -> ResultGeometry:
        """The geometry of ``model``, with what a calibration found.

        Examples
        --------
        >>> import fouriscope as fs
        >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
        >>> geometry = ResultGeometry.of(fs.ForwardModel(optics, leds, (32, 32)))
        >>> geometry.na.shape, int(geometry.bright_field.sum()), geometry.height
        ((81, 2), 37, 0.07)
        >>> geometry
        ResultGeometry: 81 LEDs up to NA 0.308, 37 in bright field, NA 0.2 → 0.508
        """
        geometry = model.geometry
        light = model.illumination.base if isinstance(model.illumination, Adjusted) else model.illumination
        source: dict[str, Any] = {}
        if isinstance(light, Multiplexed):
            source = {"patterns": light.patterns, "led_na": light.leds.directions(geometry.patch_center)}
            light = light.leds
        if isinstance(light, LEDArray):
            slide = None if light.slide is None else (light.slide.thickness, light.slide.index)
            source |= {"positions": light.positions, "height": light.height, "rotation": light.rotation}
            source |= {"offset": light.offset, "slide": slide, "die": light.die, "die_shape": light.die_shape}
        elif isinstance(light, Directions):
            source |= {"height": light.height}
        return cls(
            na=geometry.na,
            bright_field=geometry.bright_field,
            wavelength=geometry.optics.wavelength,
            bandwidth=geometry.optics.bandwidth,
            wave_curvature=geometry.optics.wave_curvature,
            objective_na=geometry.optics.na,
            patch_center=geometry.patch_center,
            margin=geometry.margin,
            zernike=dict(model.pupil.zernike),
            defocus=model.pupil.defocus,
            gains=model.gains if gains is None else np.asarray(gains, np.float64),
            nominal_na=None if nominal_na is None else np.asarray(nominal_na, np.float64),
            **source,
        )

    @classmethod
    def from_files(cls, table: str, numbers: dict[str, Any]) -> ResultGeometry:
        """The geometry that :meth:`table` and :meth:`numbers` wrote, to the last digit."""
        names, *lines = (line.split(",") for line in table.splitlines())
        columns = dict(zip(names, np.array(lines, np.float64).T, strict=True))

        def pairs(y: str, x: str) -> FloatArray | None:
            return np.stack([columns[y], columns[x]], axis=1) if y in columns else None

        na, offset, slide = pairs("na_y", "na_x"), numbers["offset_m"], numbers["slide"]
        if na is None:
            raise InvalidInputError("the table of LEDs has no column na_y")
        return cls(
            na=na,
            bright_field=columns["bright_field"] != 0,
            wavelength=numbers["wavelength_m"],
            objective_na=numbers["objective_na"],
            patch_center=tuple(numbers["patch_center_m"]),
            margin=numbers["margin_frame_pixels"],
            zernike={int(index): value for index, value in numbers["zernike_rad_rms"].items()},
            defocus=numbers["defocus_m"],
            **({} if "patterns" in numbers else {"positions": pairs("y_m", "x_m")}),
            height=numbers["height_m"],
            rotation=numbers["rotation_rad"],
            offset=None if offset is None else tuple(offset),
            slide=None if slide is None else (slide["thickness_m"], slide["index"]),
            bandwidth=numbers.get("bandwidth_m", 0.0),
            wave_curvature=numbers.get("wave_curvature_per_m"),
            die=numbers.get("die_m", 0.0),
            die_shape=numbers.get("die_shape", "square"),
            gains=columns.get("gain"),
            nominal_na=pairs("nominal_na_y", "nominal_na_x"),
            **({} if "patterns" not in numbers else _read_patterns(numbers["patterns"], len(na))),
        )

    def __repr__(self) -> str:
        told = [told_of_directions(self.na if self.led_na is None else self.led_na)]
        told += [] if self.patterns is None else [told_of_patterns(self.patterns)]
        told.append(f"{int(self.bright_field.sum())} in bright field")
        told.append(f"NA {self.objective_na:.3g} → {self.synthetic_na:.3g}")
        found = {"gains": self.gains, "directions": self.nominal_na}
        told += [f"{name} recovered" for name, value in found.items() if value is not None]
        return f"ResultGeometry: {', '.join(told)}"

    @property
    def synthetic_na(self) -> float:
        """max|na| + NA."""
        na = self.na if self.led_na is None or self.patterns is None else self.led_na[self.patterns.any(axis=0)]
        return float(np.hypot(na[:, 0], na[:, 1]).max()) + self.objective_na

    def table(self) -> str:
        """CSV, one line per LED, which ``[illumination] kind = "file"`` reads back as directions.

        The columns na_y and na_x have all their digits and are the directions *of this patch*; a configuration that
        reads them has patch_center = [0, 0]. y_m and x_m are the LEDs in the array's own frame, before its rotation and
        offset. bright_field is 1 or 0. With patterns there is one line per frame, and the LEDs are in :meth:`numbers`.
        """
        columns: dict[str, list[str]] = {
            "led" if self.patterns is None else "frame": [str(number) for number in range(len(self.na))],
            "na_y": _digits(self.na[:, 0]),
            "na_x": _digits(self.na[:, 1]),
        }
        if self.positions is not None and self.patterns is None:
            columns |= {"y_m": _digits(self.positions[:, 0]), "x_m": _digits(self.positions[:, 1])}
        columns["bright_field"] = [str(int(bright)) for bright in self.bright_field]
        if self.gains is not None:
            columns["gain"] = _digits(self.gains)
        if self.nominal_na is not None:
            nominal = self.nominal_na.T
            columns |= {"nominal_na_y": _digits(nominal[0]), "nominal_na_x": _digits(nominal[1])}
        lines = [",".join(columns), *(",".join(cells) for cells in zip(*columns.values(), strict=True))]
        return "\n".join(lines) + "\n"

    def numbers(self) -> dict[str, Any]:
        """Everything but the table, for ``geometry.json``, in SI units; null if a value does not apply."""
        slide = None if self.slide is None else {"thickness_m": self.slide[0], "index": self.slide[1]}
        return {
            "leds": len(self.na),
            "bright_field_leds": int(self.bright_field.sum()),
            "wavelength_m": self.wavelength,
            **({"bandwidth_m": self.bandwidth} if self.bandwidth else {}),
            **({} if self.wave_curvature is None else {"wave_curvature_per_m": self.wave_curvature}),
            "objective_na": self.objective_na,
            "synthetic_na": self.synthetic_na,
            "patch_center_m": list(self.patch_center),
            "margin_frame_pixels": self.margin,
            "height_m": self.height,
            "rotation_rad": self.rotation,
            "offset_m": None if self.offset is None else list(self.offset),
            "slide": slide,
            **({"die_m": self.die, "die_shape": self.die_shape} if self.die else {}),
            "defocus_m": self.defocus,
            "zernike_rad_rms": {str(index): value for index, value in self.zernike.items()},
            **({} if self.patterns is None else {"patterns": self._pattern_numbers()}),
        }

    def _pattern_numbers(self) -> dict[str, Any]:
        """The LEDs of the patterns, and [frame, led, weight] of each that shines."""
        assert self.patterns is not None
        assert self.led_na is not None
        frames, leds = np.nonzero(self.patterns)
        weights = self.patterns[frames, leds].tolist()
        return {
            "led_na": self.led_na.tolist(),
            "led_positions_m": None if self.positions is None else self.positions.tolist(),
            "frame_led_weight": [list(entry) for entry in zip(frames.tolist(), leds.tolist(), weights, strict=True)],
        }


def _read_patterns(numbers: dict[str, Any], frames: int) -> dict[str, Any]:
    led_na, positions = np.array(numbers["led_na"]), numbers["led_positions_m"]
    patterns = np.zeros((frames, len(led_na)))
    for frame, led, weight in numbers["frame_led_weight"]:
        patterns[frame, led] = weight
    found = {"patterns": patterns, "led_na": led_na}
    return found if positions is None else found | {"positions": np.array(positions)}


def _digits(values: FloatArray) -> list[str]:
    """As many digits as bring back the same number."""
    return [repr(float(value)) for value in values]


def _check(name: str, values: NDArray[Any] | None, shape: tuple[int, ...]) -> None:
    if values is None:
        return
    if np.shape(values) != shape or not np.isfinite(values).all():
        raise InvalidInputError(
            f"{name} must be finite and of shape {shape}, one entry per LED, got shape {np.shape(values)}"
        )
