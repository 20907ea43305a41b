"""BM3D: images in which every small piece occurs many times."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fouriscope.checks import door_class
from fouriscope.engines import require_numba
from fouriscope.errors import InvalidInputError
from fouriscope.priors._bm3d_parameters import OVERRIDES, PROFILES, BM3DParameters, StageParameters
from fouriscope.priors._bm3d_stages import Layout, run_stage
from fouriscope.priors.base import Image, Prior, SpecValue, Strength, check_image, check_sigma

Profile = Literal["normal", "fast"]
Stages = Literal["both", "hard"]

__all__ = ["BM3D", "BM3DParameters", "StageParameters", "bm3d"]


Matches = dict[str, npt.NDArray[np.int32]]


@door_class
class BM3D(Prior):
    r"""Block matching and 3-D filtering: images in which every small piece occurs many times.

    For each *reference block*, the most similar blocks nearby are stacked into a group [1]_, [2]_. In a suitable basis
    a group is sparse, far more so than a single block, while the noise is not: shrinking small coefficients removes
    noise and hardly any image. Every pixel is estimated by many blocks, and their average is the result. That is done
    twice.

    1. *Hard threshold.* With T the transform of a group (bior1.5 across a block, Haar along the group), the group z
       becomes T⁻¹ of the coefficients of Tz above λσ. Its blocks are averaged with weights
       :math:`w = 1/(\sigma^2 N)`, N the number of coefficients that are left, times a Kaiser window.
    2. *Wiener filter.* The first result is cleaner than the data: blocks are matched in it, and its coefficients s say
       how much of each coefficient of the data is image,

       .. math:: W = \frac{s^2}{s^2 + \sigma^2}, \qquad \hat z = T^{-1} (W\, T z), \qquad
                 w = 1 / (\sigma^2 \|W\|^2),

       now with the cosine transform across a block.

    The average of a group is never shrunk, so that BM3D(a·x + b; a·σ) = a·BM3D(x; σ) + b. There is no objective r(x);
    σ is the standard deviation of white noise, in the units of the image.

    Parameters
    ----------
    strength
        λ, see :class:`Prior`; ``"auto"`` is 0.3 of the temperature T.
    profile
        ``"normal"`` has the published parameters; ``"fast"`` has fewer reference blocks and looks at fewer others,
        nearer by, in less than half the time for some 0.07 dB less.
    stages
        ``"both"``, or ``"hard"`` for the first alone: half the time, some 0.5 dB less. A solver that is still on the
        road to its last loss uses only the first, whatever this says: it gets as far, in two thirds of the time.
    rematch_every
        Inside a solver (:meth:`denoise_next`) blocks are matched in the first of this many calls with images of one
        shape, and the matches are kept for the others, because the image changes little from call to call. 10 saves
        more than half of the time at almost no loss (docs/priors.md); 1 matches in every call, as :meth:`denoise` does.
    overrides
        Any field of :class:`StageParameters`, of one of the two stages: ``hard_step=4``, ``wiener_group=16``.

    Attributes
    ----------
    parameters
        All parameters, from the profile and the overrides.

    Notes
    -----
    Works in float32, in units of σ around the middle of the image's range; σ below the resolution of that (1e-7 of the
    range) leaves the image as it is. Images are extended by reflection to whole blocks. Not from the papers: matches
    are limited by multiples of σ², see :class:`StageParameters`, and high noise gets no other profile. The result does
    not depend on the number of threads, to the last bit.

    References
    ----------
    .. [1] K. Dabov, A. Foi, V. Katkovnik, K. Egiazarian, "Image denoising by sparse 3-D transform-domain collaborative
       filtering", IEEE Trans. Image Process. 16 (2007) 2080-2095.
    .. [2] M. Lebrun, "An analysis and implementation of the BM3D image denoising method", Image Processing On Line 2
       (2012) 175-213.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.tile(np.repeat([0.0, 1.0], 8), (64, 4))
    >>> noisy = stripes + np.random.default_rng(0).normal(0, 0.1, stripes.shape)
    >>> denoised = BM3D().denoise(noisy, sigma=0.1)
    >>> bool(np.std(denoised - stripes) < 0.2 * np.std(noisy - stripes))
    True
    """

    name = "bm3d"

    def __init__(
        self,
        strength: Strength = "auto",
        profile: Profile = "normal",
        stages: Stages = "both",
        rematch_every: int = 10,
        **overrides: float | str,
    ) -> None:
        require_numba(f"the prior {self.name!r}", "the prior 'tv'")
        super().__init__(strength)
        if profile not in PROFILES:
            raise InvalidInputError(f"expected a profile among {list(PROFILES)}, got {profile!r}")
        if stages not in ("both", "hard"):
            raise InvalidInputError(f'expected stages "both" or "hard", got {stages!r}')
        if isinstance(rematch_every, bool) or rematch_every != int(rematch_every) or rematch_every < 1:
            raise InvalidInputError(f"expected a whole number rematch_every >= 1, got {rematch_every!r}")
        unknown = sorted(set(overrides) - set(OVERRIDES))
        if unknown:
            raise InvalidInputError(f"BM3D has no parameter {', '.join(map(repr, unknown))}; known: {list(OVERRIDES)}")
        self.profile: Profile = profile
        self.stages: Stages = stages
        self.rematch_every = int(rematch_every)
        self.parameters = PROFILES[profile].with_overrides(overrides)
        self._shape: tuple[int, ...] = (0, 0)
        self._matches: Matches = {}
        self._calls = 0

    def denoise_next(self, image: Image, sigma: float) -> Image:
        """As :meth:`denoise`, but with the matches of an earlier call, see ``rematch_every``."""
        image, sigma = check_image(image), check_sigma(sigma)
        if image.shape != self._shape or self._calls % self.rematch_every == 0:
            self.reset()
        filtered, found = self._filter(image, sigma, self._matches, rough=self.rough)
        if found and self.rematch_every > 1:
            self._shape, self._matches, self._calls = image.shape, found, self._calls + 1
        return filtered

    def _denoise(self, image: Image, sigma: float) -> Image:
        return self._filter(image, sigma, {})[0]

    def _filter(self, image: Image, sigma: float, matches: Matches, *, rough: bool = False) -> tuple[Image, Matches]:
        """The filtered image and the matches used, which are found where ``matches`` holds none."""
        low, high = float(image.min()), float(image.max())
        if high == low or sigma < float(np.finfo(np.float32).eps) * (high - low):
            return image.copy(), {}
        noisy = ((image.astype(np.float64) - (low / 2 + high / 2)) / sigma).astype(np.float32)
        denoised, hard = run_stage(noisy, None, self.parameters.hard, matches.get("hard"))
        found = {"hard": hard}
        if self.stages == "both" and not rough:
            denoised, found["wiener"] = run_stage(noisy, denoised, self.parameters.wiener, matches.get("wiener"))
        # Where a pixel did not move it comes back exactly, whatever the resolution of float32.
        moved: Image = (image + sigma * (denoised.astype(np.float64) - noisy)).astype(image.dtype)
        return moved, found

    def natural_strength(self, image: Image) -> float:
        """Return 0.3. White noise of σ would ask for 1, but what an iteration leaves in the image is not white: the
        gradient moves some frequencies much further than others. Chosen on simulated problems (docs/priors.md)."""
        check_image(image)
        return 0.3

    def reset(self) -> None:
        self._shape, self._matches, self._calls = (0, 0), {}, 0

    def state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        if not self._matches:
            return {}
        return {
            "shape_and_calls": np.array([*self._shape, self._calls]),
            **{f"{stage}_matches": matches.copy() for stage, matches in self._matches.items()},
        }

    def load_state_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.reset()
        if not arrays:
            return
        both = self.stages == "both" and "wiener_matches" in arrays  # on the road there are none of the second
        names = ("hard", "wiener") if both else ("hard",)
        expected = {"shape_and_calls", *(f"{name}_matches" for name in names)}
        held = {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
        header = np.asarray(arrays.get("shape_and_calls", ()))
        if set(arrays) != expected or header.shape != (3,) or header.dtype.kind != "i" or self.rematch_every == 1:
            wanted = sorted(expected) if self.rematch_every > 1 else "none (rematch_every=1)"
            raise InvalidInputError(f"expected the state of this BM3D, {wanted}, got {held}")
        rows, columns, calls = (int(value) for value in header)
        matches = {name: arrays[f"{name}_matches"] for name in names}
        for name in names:
            if not _are_matches(matches[name], (rows, columns), getattr(self.parameters, name)):
                raise InvalidInputError(
                    f"the state's {name}_matches do not fit an image of {rows} × {columns} and these parameters of "
                    f"BM3D; got {held}"
                )
        self._shape, self._calls = (rows, columns), calls
        self._matches = {name: np.array(array, np.int32) for name, array in matches.items()}

    def spec(self) -> dict[str, SpecValue]:
        usual = PROFILES[self.profile].flat()
        return {
            "name": self.name,
            "strength": self.strength,
            "profile": self.profile,
            "stages": self.stages,
            "rematch_every": self.rematch_every,
            **{name: value for name, value in self.parameters.flat().items() if value != usual[name]},
        }


# What `**overrides` takes, by name, for help texts and for the check of descriptions in `prior_from_spec`.
BM3D.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *(p for p in inspect.signature(BM3D).parameters.values() if p.kind is not p.VAR_KEYWORD),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type(value))
            for name, value in PROFILES["normal"].flat().items()
        ),
    ]
)


def bm3d(
    image: Image, sigma: float, profile: Profile = "normal", stages: Stages = "both", **overrides: float | str
) -> Image:
    """Return ``image`` without its white noise of standard deviation σ; see :class:`BM3D`.

    Examples
    --------
    >>> import numpy as np
    >>> bm3d(np.full((2, 3), 0.5), sigma=0.1)
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    """
    parameters: dict[str, Any] = dict(overrides)
    return BM3D(profile=profile, stages=stages, **parameters).denoise(image, sigma)


def _are_matches(matches: npt.NDArray[Any], shape: tuple[int, int], stage: StageParameters) -> bool:
    """Whether all blocks lie within the image and the window of their reference: the kernels do not look."""
    if min(shape) < 1:
        return False
    layout = Layout.of(shape, stage)
    if matches.shape != (layout.reference_rows, layout.reference_columns, stage.group) or matches.dtype.kind != "i":
        return False
    row, column = np.divmod(matches, layout.columns)
    away_down = abs(row - stage.step * np.arange(layout.reference_rows)[:, None, None])
    away_along = abs(column - stage.step * np.arange(layout.reference_columns)[:, None])
    within = (row <= layout.rows - stage.block) & (column <= layout.columns - stage.block) & (matches >= 0)
    near = (away_down <= stage.radius) & (away_along <= stage.radius)
    return bool(np.all((within & near) | (matches == -1)) and np.all(matches[..., 0] >= 0))
