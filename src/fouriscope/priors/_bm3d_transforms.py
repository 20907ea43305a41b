"""The small matrices of BM3D: transforms of a block's rows and columns, and the window of the aggregation.

Every transform is a matrix that acts on a line of ``size`` pixels; a block is transformed as T x Tᵀ.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError

Matrix = npt.NDArray[np.float64]

BLOCK_TRANSFORMS = ("bior1.5", "dct", "haar", "identity")
GROUP_TRANSFORMS = ("haar", "hadamard")

# Analysis and synthesis low-pass filters of the biorthogonal spline wavelet 1.5 (Cohen, Daubechies, Feauveau 1992),
# as rational numbers over √2: one vanishing moment in the synthesis, five in the analysis.
_BIOR15_ANALYSIS = np.array([3, -3, -22, 22, 128, 128, 22, -22, -3, 3]) / 128 / np.sqrt(2)
_HAAR_LOW = np.array([1, 1]) / np.sqrt(2)


@cache
def dct_matrix(size: int) -> Matrix:
    """Return the orthonormal discrete cosine transform (type II)."""
    k, n = np.mgrid[:size, :size]
    matrix = np.sqrt(2 / size) * np.cos(np.pi * k * (2 * n + 1) / (2 * size))
    matrix[0] /= np.sqrt(2)
    return _read_only(matrix)


@cache
def wavelet_matrix(name: str, size: int) -> Matrix:
    """Return all levels of a periodic wavelet transform, from one average down to the finest details.

    The rows have norm one, so that white noise of variance σ² has variance σ² in every coefficient and one threshold
    serves them all. Haar is orthonormal; bior1.5 is not, and is inverted as a matrix.
    """
    if size & (size - 1):
        raise InvalidInputError(f"expected a power of two for the transform {name!r}, got a block size of {size}")
    low = _BIOR15_ANALYSIS if name == "bior1.5" else _HAAR_LOW
    # The high-pass of both is Haar's: the synthesis low-pass of bior1.5 is Haar's, read with alternating signs.
    high = np.array([1, -1]) / np.sqrt(2)
    matrix, length = np.eye(size), size
    while length > 1:
        level = np.eye(size)
        level[:length, :length] = np.concatenate([_periodic(low, length), _periodic(high, length)])
        matrix = level @ matrix
        length //= 2
    return _read_only(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def _periodic(taps: npt.NDArray[np.float64], length: int) -> Matrix:
    """Filter and keep every second sample; the taps are centred on the pair of pixels (2i, 2i + 1)."""
    rows = np.zeros((length // 2, length))
    for i in range(length // 2):
        for k, tap in enumerate(taps):
            rows[i, (2 * i + k - len(taps) // 2 + 1) % length] += tap
    return rows


@cache
def block_transform(name: str, size: int) -> tuple[Matrix, Matrix]:
    """Return (forward, inverse) for one dimension of a block.

    >>> forward, inverse = block_transform("bior1.5", 8)
    >>> bool(np.allclose(inverse @ forward, np.eye(8)))
    True
    """
    if name not in BLOCK_TRANSFORMS:
        raise InvalidInputError(f"expected a block transform among {BLOCK_TRANSFORMS}, got {name!r}")
    if name == "dct":
        forward = dct_matrix(size)
    elif name == "identity":
        forward = np.eye(size)
    else:
        forward = wavelet_matrix(name, size)
    return forward, _read_only(np.asarray(np.linalg.inv(forward), np.float64))


@cache
def group_matrix(name: str, size: int) -> Matrix:
    """Return the orthonormal transform along a group as a matrix; the kernels apply it as sums and differences.

    Its first row is the average. ``haar`` goes on with the averages alone, ``hadamard`` with the differences as well.
    """
    if name not in GROUP_TRANSFORMS:
        raise InvalidInputError(f"expected a group transform among {GROUP_TRANSFORMS}, got {name!r}")
    if size == 1:
        return _read_only(np.eye(1))
    half = group_matrix(name, size // 2)
    average = np.kron(half, [1, 1]) / np.sqrt(2)
    detail = np.kron(half if name == "hadamard" else np.eye(size // 2), [1, -1]) / np.sqrt(2)
    return _read_only(np.concatenate([average, detail]))


def kaiser_window(size: int, beta: float) -> npt.NDArray[np.float64]:
    """Return the Kaiser window of one dimension; that of a block is its outer product with itself."""
    return np.kaiser(size, beta) if size > 1 else np.ones(1)


def _read_only(matrix: Matrix) -> Matrix:
    matrix.flags.writeable = False
    return matrix
