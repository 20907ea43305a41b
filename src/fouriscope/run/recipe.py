"""The recipe: how frames are reconstructed by default. It is defined only here.

``fouriscope import`` and ``fouriscope simulate --hostile`` write the recipe for measured frames into their files, with
the reasons; :func:`fouriscope.reconstruct` uses it for arguments that are "auto".
"""

from __future__ import annotations

from typing import Any

from fouriscope.settings import ReconstructionConfig

Document = dict[str, dict[str, Any]]

# What an argument is that the recipe decides.
AUTO = "auto"

# For measured frames: each section with the reason that is written beside it.
MEASURED: dict[str, tuple[str, dict[str, Any]]] = {
    "object": ('the complex wave behind the sample; "phase" for a sample that does not absorb', {"model": "wave"}),
    "alignment": (
        "found from the frames before the reconstruction; kept as described if that explains the frames as well",
        {
            "circles": True,
            "exposure": True,
            "focus": True,
            "response": True,
            "na": True,
            "array": True,
            "die": True,
            "edge": True,
            "curvature": True,
        },
    ),
    "calibration": (
        "refined during the reconstruction: aberrations, the rest of the pupil, brightness of each LED",
        {"zernike": True, "pixels": True, "gains": True},
    ),
    "solver": ("", {"method": "spectral", "loss": "amplitude", "start": "epry"}),
    "prior": ("", {"name": "tv"}),
    "stop": ("150, or 600 if unseen frames show that it pays", {"iterations": "auto"}),
}

# For a simulation that a phase does not explain (:mod:`fouriscope.run.doubt`): the sample absorbs, or the pupil is
# another one. Residuals below 0.001 mean that nothing more comes: all frames take part in the last iterations.
UNEXPLAINED: Document = {
    "object": {"model": "wave"},
    "calibration": {"zernike": True},
    "solver": {
        "method": "spectral",
        "loss": "amplitude",
        "sampler": "warm-up",
        "strength_factor": 1.0,
        "long_steps": True,
    },
    "stop": {"iterations": 250, "residual": 1e-3},
}

# The sections that are others if measured frames are for EPRY: it begins flat, finds the pupil by itself and takes no
# prior; fading steps calm it, and after 20 sweeps it is done.
MEASURED_EPRY: Document = {
    "calibration": {},
    "solver": {"loss": "amplitude", "pupil_step": 1.0, "decay": 0.3},
    "prior": {"name": "none"},
    "stop": {"iterations": 20},
}


def is_auto(value: object) -> bool:
    """Whether an argument is left to the recipe; arrays and priors can be asked too."""
    return isinstance(value, str) and value == AUTO


def measured_sections() -> Document:
    """The recipe for measured frames, as the sections of a configuration."""
    return {section: dict(keys) for section, (_, keys) in MEASURED.items()}


def completed(chosen: Document, *, measured: bool, unexplained: bool = False) -> Document:
    """The sections of ``chosen`` with the keys that the recipe adds to them; what is chosen is kept.

    For frames that are not ``measured`` (a simulation whose model is known exactly) the recipe is the defaults of the
    settings, or :data:`UNEXPLAINED`. For measured ones it is :data:`MEASURED`, except for what follows from the choice:

    * "spectral" is for a wave and the amplitude loss; with another object or loss the method is that of the settings;
    * "epry" has :data:`MEASURED_EPRY`, and takes no prior of simulated frames either.

    Examples
    --------
    >>> completed({"object": {"model": "phase"}}, measured=True)["solver"]
    {'method': 'pnp', 'loss': 'amplitude', 'start': 'epry'}
    >>> completed({"solver": {"method": "epry"}}, measured=True)["stop"]
    {'iterations': 20}
    >>> completed({"stop": {"iterations": 9}}, measured=False)
    {'stop': {'iterations': 9}}
    """
    recipe = measured_sections() if measured else dict(UNEXPLAINED) if unexplained else {}
    method = chosen.get("solver", {}).get("method")
    if method == "epry":
        recipe |= MEASURED_EPRY if measured else {"prior": {"name": "none"}}
    elif measured and method is None and not suits_spectral(chosen):
        recipe["solver"]["method"] = ReconstructionConfig().solver.method
    return {section: recipe.get(section, {}) | chosen.get(section, {}) for section in recipe | chosen}


def suits_spectral(chosen: Document) -> bool:
    """Whether the object and the loss that are chosen, if any, are those that "spectral" is for."""
    recipe = measured_sections()
    pairs = (("object", "model"), ("solver", "loss"))
    return all(chosen.get(section, {}).get(key, AUTO) in (AUTO, recipe[section][key]) for section, key in pairs)
