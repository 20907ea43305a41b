"""What the engine "torch" needs on its device, by a formula: nothing is imported or allocated here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fouriscope.fidelity.array_losses import MOST_ARRAYS
from fouriscope.forward.grids import seen_bins
from fouriscope.forward.pupils import all_kept, kept_bytes
from fouriscope.optics import Geometry

# Bytes of the fields of a group. On the CPU so many stay in the cache; a card wants large groups.
CPU_FIELDS, CARD_FIELDS = 5 * 2**18, 2**29


class TorchMemory(NamedTuple):
    """Bytes on the device: ``objects`` whatever is computed, ``pupils`` that are kept, ``frames`` if all are kept, and
    ``source`` for each source of a group that is computed together."""

    objects: int
    pupils: int
    frames: int
    source: int

    def total(self, sources: int, *, keeps_frames: bool) -> int:
        """Bytes where so many sources are computed at once, by all threads together."""
        return self.objects + self.pupils + sources * self.source + (self.frames if keeps_frames else 0)


class Shares(NamedTuple):
    """How a device's memory is used: sources computed together, and whether frames stay there."""

    group: int
    keeps_frames: bool


def torch_memory(
    geometry: Geometry,
    *,
    channels: int,
    itemsize: int,
    own_masks: bool = False,
    at_once: float = 1.0,
    freed: int = 1,
) -> TorchMemory:
    """The formula, with N pixels of the object, K × L rows and columns of its spectrum that are seen, a box of h × w, G
    pixels of a frame's grid and Y of a frame, for c = 2f bytes of a complex number::

        objects = 2 f N · channels + c N (1 + s + s k) + c (rows + 2 K) L
                                     x and its gradient; o, spectra that are padded, and their transforms; what is
                                     seen of two spectra, and one that is transformed along rows alone
        pupils  = c h w for each source, if they fit into 32 MiB
        frames  = f Y for each frame, twice that if each has a mask of its own
        source  = c (2 h w + G + Y) + 2 f Y + k (c G + 3.25 f Y)
                                     pupils and boxes, padded boxes, products; y and intensities; a transform, and what
                                     the loss needs. c h w more if pupils are not kept, c G more with a margin, f Y
                                     more with masks of their own

    The share s of the object (``at_once``) is transformed at once: 1 on a card, on the CPU for each thread a quarter or
    less, 512 KiB of a large object. What is freed after each step counts k times (``freed``): once where it is given
    back, twice where it is kept, because little of it fits what is asked for next.

    >>> from fouriscope.paper import paper_model
    >>> memory = torch_memory(paper_model().geometry, channels=1, itemsize=4)
    >>> round(memory.total(32, keeps_frames=True) / 2**20)
    45
    """
    real, box = itemsize, geometry.support_box
    pixels = int(np.prod(geometry.object_shape))
    rows, columns = (stop - lowest for lowest, stop in seen_bins(geometry))
    spectra = (geometry.object_shape[0] + 2 * rows) * columns
    frame, grid, boxes = (
        int(np.prod(shape)) for shape in (geometry.frame_shape, geometry.grid_shape, (box.height, box.width))
    )
    dtype = np.dtype(f"c{2 * real}")
    pupils = kept_bytes(geometry, dtype) if all_kept(geometry, dtype) else 0  # the device keeps all of them or none
    stays = 2 * real * ((2 if pupils else 3) * boxes + (2 if geometry.margin else 1) * grid + frame)
    data = (3 if own_masks else 2) * real * frame
    return TorchMemory(
        objects=2 * real * pixels * channels + 2 * real * (int((1 + at_once + freed * at_once) * pixels) + spectra),
        pupils=pupils,
        frames=real * frame * len(geometry.na) * (2 if own_masks else 1),
        source=stays + data + freed * (2 * real * grid + int(MOST_ARRAYS * real * frame)),
    )


def shares(memory: TorchMemory, limit: int, wanted: int, at_least: int = 1, threads: int = 1) -> Shares:
    """The largest group up to ``wanted`` with which ``threads`` of them fit into ``limit`` bytes; frames stay on the
    device if they fit beside that.

    ``at_least`` is the most sources of a frame, which are computed together in any case.

    >>> shares(TorchMemory(100, 0, 400, 10), limit=700, wanted=20)
    Shares(group=20, keeps_frames=True)
    >>> shares(TorchMemory(100, 0, 400, 10), limit=300, wanted=20, threads=2)
    Shares(group=10, keeps_frames=False)
    """
    wanted = max(at_least, wanted)
    keeps = memory.total(threads * wanted, keeps_frames=True) <= limit
    room = limit - memory.total(0, keeps_frames=keeps)
    return Shares(max(at_least, min(wanted, room // (memory.source * threads))), keeps)


def even_groups(sources: int, at_most: int, threads: int) -> int:
    """A size of groups, up to ``at_most``, with which each thread gets as many as the others.

    >>> even_groups(293, 32, 2), even_groups(60, 32, 2), even_groups(5, 32, 8)
    (30, 30, 1)
    """
    rounds = max(1, -(-sources // (at_most * threads)))
    return max(1, -(-sources // (rounds * threads)))
