"""Total variation: images of few edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.placement import namespace, on_host
from fouriscope.priors._tv_solver import Workspace, solve_dual, tv_kernels
from fouriscope.priors.base import Image, Prior, Strength, check_image, check_sigma, scale_likelihood_strength

# Of a call that starts from the dual of the image before: this many over the accuracy, 100 for the default of 0.05.
NEXT_ITERATIONS = 5.0


@door_class
class TV(Prior):
    r"""Total variation, r(x) = TV(x): piecewise smooth images with few edges.

    .. math::
        \mathrm{TV}(x) = \sum_i \sqrt{(\partial_y x)_i^2 + (\partial_x x)_i^2}
        \quad\text{or}\quad \sum_i |(\partial_y x)_i| + |(\partial_x x)_i|

    (isotropic or anisotropic) with forward differences that vanish beyond the last row and column: nothing wraps
    around. ``denoise`` is the proximal operator with weight w = σ² (= γλ in a solver),

    .. math:: x^\star = \arg\min_x \tfrac12 \|x - z\|^2 + w\, \mathrm{TV}(x).

    The update runs on the dual, x = z + w div p with abs(p) ≤ 1, by accelerated projected gradient [1]_

    .. math:: p_{k+1} = \Pi\bigl(r_k + \tfrac{1}{8w} \nabla(z + w\,\mathrm{div}\, r_k)\bigr), \qquad
              r_{k+1} = p_{k+1} + \tfrac{t_k - 1}{t_{k+1}} (p_{k+1} - p_k),

    whose momentum restarts when it climbs [2]_. The dual is kept **warm**: the next call starts from it, which makes
    the calls of a solver several times cheaper than the first. ``reset()`` drops it.

    It stops by what is left to gain, not by a count. The duality gap w Σ (abs(∇x) − p·∇x) is a sum of terms ≥ 0,
    without cancellation, and bounds the distance: ‖x − x*‖² ≤ gap, because both the primal and the dual value of x
    are ½‖x − x*‖² or more away from the optimum. With n pixels it stops at

    .. math:: \sqrt{\mathrm{gap}/n} \le \mathrm{accuracy} \cdot \min(w, \mathrm{std}(z)),

    a certified root-mean-square distance to the exact minimiser, as a fraction of the weight (or of all there is to
    smooth, if that is less), or where the arithmetic of the dtype resolves no more: gap/n ≤ 2 ε w (max z − min z).

    Parameters
    ----------
    strength
        λ, the weight of TV(x) against the data fidelity; ``"auto"`` is T·θn/TV(x) (:meth:`Prior.natural_strength`).
    isotropic
        Whether an edge costs the same in all directions.
    accuracy
        The certified distance, see above. The true one is usually several times smaller.
    max_iterations
        A guard: after this many iterations a call returns the image of the smallest gap seen, without a warning;
        ``last_gap`` tells how good it is.

    Attributes
    ----------
    last_gap, last_iterations
        The duality gap that the last call of ``denoise`` ended with, and the iterations it took.

    Notes
    -----
    The result does not depend on the number of threads, to the last bit. Float32 images are worked on in float32.

    References
    ----------
    .. [1] A. Beck, M. Teboulle, "Fast gradient-based algorithms for constrained total variation image denoising and
       deblurring problems", IEEE Trans. Image Process. 18 (2009) 2419-2434.
    .. [2] B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15
       (2015) 715-732.

    Examples
    --------
    A step of height 4 between two and three pixels: each side moves towards the other by w over its length.

    >>> import numpy as np
    >>> TV(accuracy=1e-6).denoise(np.array([[0.0, 0.0, 4.0, 4.0, 4.0]]), sigma=np.sqrt(0.6)).round(3)
    array([[0.3, 0.3, 3.8, 3.8, 3.8]])
    """

    name = "tv"
    has_objective: ClassVar[bool] = True
    theta: ClassVar[float] = 0.1
    """θ of the normaliser τ^{-θn} of exp(−τ TV(x)); see :meth:`Prior.natural_strength`. Neighbouring differences are
    far from independent, hence less than 1; chosen on simulated problems (docs/priors.md)."""

    def __init__(
        self,
        strength: Strength = "auto",
        isotropic: bool = True,
        accuracy: float = 0.05,
        max_iterations: int = 1000,
    ) -> None:
        super().__init__(strength)
        if not (math.isfinite(accuracy) and accuracy > 0):
            raise InvalidInputError(
                f"expected an accuracy > 0 (a fraction of the weight, such as 0.05), got {accuracy}"
            )
        if max_iterations != int(max_iterations) or max_iterations < 1:
            raise InvalidInputError(f"expected a whole number max_iterations >= 1, got {max_iterations}")
        self.isotropic = bool(isotropic)
        self.accuracy = float(accuracy)
        self.max_iterations = int(max_iterations)
        self.last_gap = math.nan
        self.last_iterations = 0
        self._workspace: Workspace | None = None
        self._dual: Any = None  # of tensors

    def denoise_next(self, image: Image, sigma: float) -> Image:
        """As :meth:`denoise`, but from the second image of a sequence on with at most 5/``accuracy`` iterations: 100.

        They start from the dual of the image before, so what one call leaves undone the next ones do. Few images need
        this many; those that the weight nearly flattens would take a thousand each time, for no visible gain.
        """
        image, sigma = check_image(image), check_sigma(sigma)
        if sigma == 0:
            return image.copy()
        is_warm = self._workspace is not None and self._workspace.fits(image)
        return self._denoised(image, sigma, self._fewer if is_warm else self.max_iterations)

    @property
    def _fewer(self) -> int:
        return min(self.max_iterations, math.ceil(NEXT_ITERATIONS / self.accuracy))

    def denoise_tensor(self, image: Any, sigma: float) -> Any:
        """:meth:`denoise_next` for a tensor, on its device, to rounding; the dual stays there, too."""
        from fouriscope.priors._tv_torch import solve_tensor

        weight = check_sigma(sigma) ** 2
        low, high = (float(end) for end in image.aminmax())
        if not math.isfinite(high - low):
            raise InvalidInputError("expected an image of finite pixels; a diverging solver needs a smaller step")
        scale = self._work(low, high, weight, image.numel(), namespace(image).finfo(image.dtype))
        if scale == "none":
            return image.clone()
        if scale == "mean":
            return image.mean().expand_as(image).clone()
        scaled = (image - (low + (high - low) / 2)) * (1 / weight)
        enough = self._enough(float(scaled.var(correction=0)), image.numel(), scale)
        warm = self._warm_dual(image)
        start = image.new_zeros((2, *image.shape)) if warm is None else warm
        solution = solve_tensor(
            scaled, start, self.isotropic, enough, self.max_iterations if warm is None else self._fewer
        )
        self._dual = solution.dual
        self.last_gap, self.last_iterations = solution.gap * weight**2, solution.iterations
        return image + weight * (solution.x - scaled)

    def _warm_dual(self, image: Any) -> Any:
        """The dual of the tensor before, or of a state that was loaded; None if there is none of this shape."""
        if self._dual is None and self._workspace is not None and self._workspace.shape == tuple(image.shape):
            self._dual = image.new_tensor(self._workspace.dual[0][:2])
        return self._dual if self._dual is not None and self._dual.shape[1:] == image.shape else None

    def _work(
        self, low: float, high: float, weight: float, size: int, resolution: Any
    ) -> float | Literal["none", "mean"]:
        """What there is to do on an image between ``low`` and ``high``: nothing, its mean, or the dual iteration, whose
        gap the dtype resolves to so much of the weight."""
        span, epsilon = high - low, float(resolution.eps)
        self.last_gap, self.last_iterations = 0.0, 0
        # No pixel moves by more than 4w: below the resolution of the dtype (or on a constant image) there is no work.
        if span == 0 or 16 * weight <= epsilon * span or weight < float(resolution.tiny):
            return "none"
        # A dual of at most n·span along a path through all pixels reaches the mean, so it is the exact minimiser.
        return "mean" if weight >= size * span else 2 * epsilon * span / weight

    def _enough(self, variance: float, size: int, resolved: float) -> float:
        """The gap, in units of the weight, at which to stop."""
        return size * max(self.accuracy**2 * min(1.0, variance), resolved)

    def _denoise(self, image: Image, sigma: float) -> Image:
        return self._denoised(image, sigma, self.max_iterations)

    def _denoised(self, image: Image, sigma: float, max_iterations: int) -> Image:
        weight = sigma * sigma
        low, high = float(image.min()), float(image.max())
        scale = self._work(low, high, weight, image.size, np.finfo(image.dtype))
        if scale == "none":
            return image.copy()
        if scale == "mean":
            return np.full_like(image, low + np.mean(image - image.dtype.type(low), dtype=np.float64))

        kernels, space = tv_kernels(), self._workspace_for(image)
        contiguous = np.ascontiguousarray(image)
        # In units of the weight, around zero: the kernels then meet neither large offsets nor extreme scales.
        variance = kernels.to_units_of_weight(contiguous, low + (high - low) / 2, weight, space.scaled)
        enough = self._enough(variance, image.size, scale)
        solution = solve_dual(space, self.isotropic, enough, max_iterations)
        self.last_gap, self.last_iterations = solution.gap * weight**2, solution.iterations
        denoised = np.empty_like(contiguous)
        kernels.from_units_of_weight(contiguous, space.scaled, solution.x, weight, denoised)
        return denoised

    def _workspace_for(self, image: Image) -> Workspace:
        if self._workspace is None or not self._workspace.fits(image):
            height, width = image.shape
            self._workspace = Workspace((height, width), image.dtype)
        return self._workspace

    def _objective(self, image: Image) -> float:
        return float(tv_kernels().total_variation(np.ascontiguousarray(image), self.isotropic))

    def natural_strength(self, image: Image) -> float:
        """Return θn/TV(x), or ``inf`` for a constant image; see :meth:`Prior.natural_strength`."""
        return scale_likelihood_strength(self.theta, np.size(image), self.objective(image))

    def natural_strength_of_tensor(self, image: Any) -> float:
        from fouriscope.priors._tv_torch import total_variation

        return scale_likelihood_strength(self.theta, image.numel(), total_variation(image, self.isotropic))

    def reset(self) -> None:
        self._workspace, self._dual = None, None
        self.last_gap = math.nan
        self.last_iterations = 0

    def state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        if self._dual is not None:
            return {"dual": on_host(self._dual).copy()}
        return {} if self._workspace is None else {"dual": self._workspace.dual[0][:2].copy()}

    def load_state_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.reset()
        if not arrays:
            return
        dual = arrays.get("dual")
        if dual is None or len(arrays) != 1 or dual.ndim != 3 or len(dual) != 2 or dual.dtype.kind != "f":
            held = {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
            raise InvalidInputError(f'expected the state of TV, {{"dual": (2, rows, columns)}}, got {held}')
        self._workspace = Workspace((dual.shape[1], dual.shape[2]), dual.dtype)
        self._workspace.dual[0][:2] = dual
