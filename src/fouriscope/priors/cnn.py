"""A small trained network of our own: images that look like photographs, at the price of a few convolutions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fouriscope.checks import door_class
from fouriscope.engines import require_numba
from fouriscope.errors import InvalidInputError
from fouriscope.priors._cnn_forward import SHIPPED, Weights, Workspace, load_weights, remove_noise, workspace_for
from fouriscope.priors.base import Image, Prior, Strength, check_image

LARGEST_SIGMA = 0.5
"""In units of the image's range: no more noise than this fits into it, and a network that is told so invents some."""


@door_class
class SmallCNN(Prior):
    r"""A small convolutional network of our own, shipped with its weights; needs no torch.

    The network n predicts the noise, and the result is what is left [1]_:

    .. math:: \mathrm{denoise}_\sigma(x) = x - (1 - M)^2\, n(x - \bar x, \sigma),

    with :math:`\bar x` the mean of the image, and M a local mean over some 30 pixels. Slow variations, of which white
    noise has almost none, do not change, however often a solver calls. As in FFDNet [2]_, n sees the image as its
    2 × 2 phases, four planes of half the size, and σ as a fifth plane; nine layers of 3 × 3 filters follow, 32 channels
    with ReLU between them, and the last one gives the noise of the four phases: a pixel depends on 38 × 38 pixels
    around it. No layer has a bias [3]_. Every operation is then homogeneous, so that for a > 0

    .. math:: \mathrm{denoise}_{a\sigma}(a x + b) = a\,\mathrm{denoise}_\sigma(x) + b

    and neither the units of an image nor its range matter, only its contrast in units of σ. There is no objective r(x);
    σ is the standard deviation of white noise.

    A network promises nothing about images unlike those it was trained on. Three limits hold for every image: no pixel
    moves by more than 5 σ, so that σ → 0 returns the image; none leaves the range of the image; and σ counts as at
    most half of that range.

    Parameters
    ----------
    strength
        λ, see :class:`Prior`; ``"auto"`` is 0.5 of the temperature T.
    weights
        ``"shipped"``, or a file that ``tools/train_denoiser.py`` wrote.

    Notes
    -----
    Works in float32, in units of σ; σ below the resolution of that (1e-7 of the range) leaves the image as it is. The
    result does not depend on the number of threads, to the last bit. Images of odd size are continued by repeating the
    last row or column. Memory: some 64 bytes per pixel, and no more than for 1024 rows.

    References
    ----------
    .. [1] K. Zhang, W. Zuo, Y. Chen, D. Meng, L. Zhang, "Beyond a Gaussian denoiser: residual learning of deep CNN for
       image denoising", IEEE Trans. Image Process. 26 (2017) 3142-3155.
    .. [2] K. Zhang, W. Zuo, L. Zhang, "FFDNet: toward a fast and flexible solution for CNN-based image denoising", IEEE
       Trans. Image Process. 27 (2018) 4608-4622.
    .. [3] S. Mohan, Z. Kadkhodaie, E. P. Simoncelli, C. Fernandez-Granda, "Robust and interpretable blind image
       denoising via bias-free convolutional neural networks", Int. Conf. Learning Representations (2020).
    .. [4] M. Terris, T. Moreau, N. Pustelnik, J. Tachella, "Equivariant plug-and-play image reconstruction", IEEE/CVF
       Conf. Computer Vision and Pattern Recognition (2024).

    Examples
    --------
    >>> import numpy as np
    >>> y, x = np.mgrid[:64, :64]
    >>> disc = np.where(np.hypot(y - 30, x - 34) < 20, 1.0, 0.0)
    >>> noisy = disc + np.random.default_rng(0).normal(0, 0.1, disc.shape)
    >>> denoised = SmallCNN().denoise(noisy, sigma=0.1)
    >>> bool(np.std(denoised - disc) < 0.4 * np.std(noisy - disc))
    True
    """

    name = "cnn"

    def __init__(self, strength: Strength = "auto", weights: str = "shipped") -> None:
        require_numba(f"the prior {self.name!r}", "the prior 'tv'")
        super().__init__(strength)
        self.weights = str(weights)
        self._network: Weights | None = None
        self._workspace: Workspace | None = None
        self._worked_on: tuple[int, ...] = ()
        self._calls = 0
        if self.weights != "shipped":
            self.network()  # a file that is not there is worth knowing of before a long run, not in it

    def network(self) -> Weights:
        """Return the filters, and what their file says about them (``.about``); they are read at first use."""
        if self._network is None:
            self._network = load_weights(SHIPPED if self.weights == "shipped" else Path(self.weights))
        return self._network

    def denoise_next(self, image: Image, sigma: float) -> Image:
        """As :meth:`denoise`, but each call sees the image turned or mirrored in another of the eight ways [4]_.

        A network does not treat all orientations alike. Its errors in one are corrected by the next call instead of
        repeated; without that, edges fray where the data say little.
        """
        turns, mirrored = self._calls % 4, self._calls % 8 >= 4
        turned = np.rot90(check_image(image), turns)
        denoised = self.denoise(turned[::-1] if mirrored else turned, sigma)
        self._calls += 1
        return np.ascontiguousarray(np.rot90(denoised[::-1] if mirrored else denoised, -turns))

    def _denoise(self, image: Image, sigma: float) -> Image:
        low, high = float(image.min()), float(image.max())
        if high == low or sigma < float(np.finfo(np.float32).eps) * (high - low):
            return image.copy()
        network = self.network()
        rows, columns = image.shape
        if self._workspace is None or self._worked_on != image.shape:
            self._workspace = workspace_for((rows, columns), len(network.layers))
            self._worked_on = image.shape
        contiguous = np.ascontiguousarray(image)
        centre = float(np.mean(contiguous, dtype=np.float64))
        believed = min(sigma, LARGEST_SIGMA * (high - low))
        return remove_noise(contiguous, centre, believed, (low, high), network, self._workspace)

    def __deepcopy__(self, memo: dict[int, Any]) -> SmallCNN:
        twin = copy.copy(self)  # the filters are read only and can be shared; the memory for activations cannot
        twin.reset()
        return twin

    def natural_strength(self, image: Image) -> float:
        """Return 0.5. White noise of σ would ask for 1, but what an iteration leaves in the image is not white. Chosen
        on simulated problems (docs/priors.md)."""
        check_image(image)
        return 0.5

    def reset(self) -> None:
        self._workspace, self._worked_on, self._calls = None, (), 0

    def state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"calls": np.array(self._calls)} if self._calls else {}

    def load_state_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.reset()
        if not arrays:
            return
        calls = arrays.get("calls")
        if calls is None or len(arrays) != 1 or calls.shape != () or calls.dtype.kind not in "iu" or int(calls) < 0:
            held = {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
            raise InvalidInputError(f'expected the state of SmallCNN, {{"calls": a whole number}}, got {held}')
        self._calls = int(calls)
