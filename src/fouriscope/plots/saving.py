"""Figures as files that are complete or not there."""

from __future__ import annotations

import gc
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from fouriscope.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
    """Write ``figure`` to ``path``; the ending chooses the format (.png, .pdf, .svg, …).

    The file appears complete or not at all: it is written under another name and renamed. A watched folder never
    shows half a figure.

    Parameters
    ----------
    figure
        The figure.
    path
        The file to write.
    dpi
        Dots per inch of pixel formats.

    Examples
    --------
    >>> import tempfile
    >>> from fouriscope.plots import convergence_figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(convergence_figure({"SNR": ([1, 2], [3, 4])}), Path(folder) / "snr.png").name
    'snr.png'
    """
    path = Path(path)
    file_format = path.suffix.lower().removeprefix(".")
    supported = figure.canvas.get_supported_filetypes()
    if file_format not in supported:
        raise InvalidInputError(
            f"the name of a figure must end in a format that matplotlib writes, but it is {path.name!r}; "
            f"use one of .{', .'.join(sorted(supported))}"
        )
    gc.collect()  # matplotlib's layout leaves cycles behind in which the images are caught that a figure was made of
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("xb") as stream:
                figure.savefig(stream, format=file_format, dpi=dpi, facecolor="white")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write the figure {path}: {error.strerror or error}; name a file in an existing, writable folder"
        ) from error
    return path
