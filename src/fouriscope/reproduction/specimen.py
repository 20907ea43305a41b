"""The measured sample of figure 4: what its configuration says, some frames set aside, and the LEDs aligned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Geometry
from fouriscope.reproduction.protocol import BATCH, Method
from fouriscope.run.aligned import aligned, with_alignment
from fouriscope.run.assemble import build_acquisition, build_model, build_solver
from fouriscope.run.config import load_config, parse_config
from fouriscope.run.files import write_json
from fouriscope.run.inputs import resolved
from fouriscope.run.provenance import FrameDigest, describe_acquisition
from fouriscope.settings import RunConfig
from fouriscope.solvers import Solver
from fouriscope.tuning import hold_out

# What suits a measured sample where nothing is said: stains absorb, lenses have aberrations, LEDs differ.
MODEL = "complex"
SOLVER = {"loss": "amplitude", "start": "epry"}
SOLVER_WORDS = {"loss": "the amplitude loss", "start": "a start by a few sweeps of EPRY"}
CALIBRATION = settings.Calibration(zernike=True, gains=True)
ALIGNMENT = settings.Alignment(focus=True, array=True)


@dataclass(frozen=True, eq=False)
class Specimen:
    """An acquisition for all methods of figure 4, which differ in prior and sampler alone.

    Attributes
    ----------
    name
        Of the configuration file, without its ending.
    config
        The configuration, with what it leaves open chosen for measured data.
    base
        Where relative paths in it start.
    acquisition
        With weight 0 for ``held_out``: neither a reconstruction nor the alignment sees those frames.
    held_out
        The LEDs whose frames are predicted in the end: 8 %, spread over bright and dark field.
    digest
        Checksums of the frames and of their masks.
    field
        Rows and columns of the reconstruction, without its margin.
    assumed
        What the file does not say and was chosen here, in words.
    notes
        What the alignment found.
    """

    name: str
    config: RunConfig
    base: Path
    acquisition: Acquisition
    held_out: NDArray[np.int64]
    digest: FrameDigest
    field: tuple[int, int]
    assumed: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Specimen:
        """Read a configuration as ``fouriscope import`` writes it; nothing is aligned yet."""
        config, assumed = with_choices(load_config(path))
        base = path.resolve().parent
        acquisition = build_acquisition(config, base)
        digest = FrameDigest(acquisition.frames.shape)
        acquisition.check_frames(digest.add)
        model = build_model(acquisition, config)  # what does not fit is told before anything takes its time
        held_out = _held_out(acquisition, config.solver.seed, path)
        return cls(
            path.stem,
            config,
            base,
            _without(acquisition, held_out),
            held_out,
            digest,
            _field(model),
            tuple(assumed),
        )

    def aligned(self, folder: Path, tell: Callable[[str], object]) -> Specimen:
        """Aligned as [alignment] says, once for all methods; what an earlier run found is taken from ``folder``."""
        if not self.config.alignment.is_wanted:
            return self
        path, key = folder / "alignment.json", self.fingerprint()
        kept = _read_alignment(path, key)
        if kept is None:
            tell(f"{self.name}: aligning focus and LEDs, once for all methods")
            found = aligned(self.acquisition, self.config.alignment, tell)
            kept = {"key": key, "notes": list(found.notes)}
            kept["document"] = with_alignment(resolved(self.config, self.base), found)
            folder.mkdir(parents=True, exist_ok=True)
            write_json(path, kept)
        config = parse_config(kept["document"], where=str(path))
        acquisition = _without(build_acquisition(config, self.base), self.held_out)
        return replace(self, config=config, acquisition=acquisition, notes=tuple(kept["notes"]))

    def solver(self, method: Method, gradients: int) -> tuple[Solver, int]:
        """The solver of a method, and how many iterations it takes."""
        calibration = self.config.calibration
        kept = {"loss", "poisson_background", "start", "seed"}
        own: dict[str, Any] = {}
        if method.options.get("method") == "epry":
            # It recovers the pupil in its own way.
            own["pupil_step"] = 1.0
            calibration = calibration.model_copy(update={"zernike": False, "pixels": False})
        else:
            kept |= {"step", "acceleration"}
        solver = method.settings(len(self.acquisition), **self.config.solver.model_dump(include=kept), **own)
        config = self.config.model_copy(update={"solver": solver, "calibration": calibration, "prior_absorption": None})
        return build_solver(self.acquisition, config, prior=method.make_prior(self.strength(method))), (
            method.iterations(gradients)
        )

    def strength(self, method: Method) -> float | None:
        """The number in [prior] for the prior that it names; None is automatic."""
        written = self.config.prior.get("strength", "auto")
        if written == "auto" or self.config.prior.get("name") != method.prior.lower():
            return None
        return float(written)

    def fingerprint(self, **more: Any) -> str:
        """Everything that a result depends on: frames, microscope, held-out LEDs, configuration, and ``more``."""
        words = {
            "frames": self.digest.checksum,
            "acquisition": describe_acquisition(self.acquisition, self.digest),
            "config": self.config.model_dump(mode="json", exclude={"frames", "stop"}),
            **more,
        }
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def with_choices(config: RunConfig) -> tuple[RunConfig, list[str]]:
    """``config`` with a choice for what it leaves open, and each choice in words."""
    update: dict[str, Any] = {}
    assumed = []
    if "model" not in config.object.model_fields_set:
        update["object"] = config.object.model_copy(update={"model": MODEL})
        assumed.append("a complex object")
    open_keys = {key: value for key, value in SOLVER.items() if key not in config.solver.model_fields_set}
    if open_keys:
        update["solver"] = config.solver.model_copy(update=open_keys)
        assumed.extend(SOLVER_WORDS[key] for key in open_keys)
    if "alignment" not in config.model_fields_set:
        update["alignment"] = ALIGNMENT
        assumed.append("focus and LED array aligned beforehand")
    if "calibration" not in config.model_fields_set:
        update["calibration"] = CALIBRATION
        assumed.append("aberrations (Zernike) and LED gains calibrated during the reconstruction")
    return config.model_copy(update=update), assumed


def _field(model: ForwardModel) -> tuple[int, int]:
    rows, columns = model.geometry.object_window
    return len(range(model.object_shape[0])[rows]), len(range(model.object_shape[1])[columns])


def _held_out(acquisition: Acquisition, seed: int, path: Path) -> NDArray[np.int64]:
    used = np.flatnonzero(acquisition.frame_weights > 0)
    geometry = Geometry.compile(
        acquisition.optics, acquisition.illumination, acquisition.frame_shape, patch_center=acquisition.patch_center
    )
    # The random numbers of `fouriscope tune`: both set the same frames aside.
    held_out = hold_out(geometry, used, None, np.random.default_rng((seed, 2)))
    left = len(used) - len(held_out)
    if left <= BATCH:
        raise InvalidInputError(
            f"{path}: figure 4 compares {BATCH} fixed frames with {BATCH} new ones per iteration, so more than {BATCH} "
            f"are needed besides the {len(held_out)} held out, but {left} are left; use an acquisition with more frames"
        )
    return held_out


def _without(acquisition: Acquisition, leds: NDArray[np.int64]) -> Acquisition:
    weights = acquisition.frame_weights
    weights[leds] = 0
    return replace(acquisition, weights=weights)


def _read_alignment(path: Path, key: str) -> dict[str, Any] | None:
    """An alignment that was kept, if it is the one of ``key``; one that cannot be read is made again."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return kept if isinstance(kept, dict) and kept.get("key") == key else None
