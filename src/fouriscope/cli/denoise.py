"""`fouriscope denoise`: one prior on one image, to see what it does in a solver; `fouriscope priors` lists them."""

from __future__ import annotations

import io
import re
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from fouriscope.acquisition.stored import reading
from fouriscope.acquisition.tiff_file import read_tiff
from fouriscope.cli.options import Force, Quiet, console_of
from fouriscope.errors import InvalidInputError
from fouriscope.priors import Prior, installed_priors, prior_from_spec
from fouriscope.priors.base import check_image, check_sigma
from fouriscope.run.files import atomic_write
from fouriscope.run.toml_lines import value_or_word

FORMATS = (".tif", ".tiff", ".png", ".npy")


def run_denoise(
    image: Annotated[Path, typer.Argument(help="A grey image: TIFF, PNG or .npy.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Image to write. TIFF and .npy hold floats; PNG has the bit depth of the input."
        ),
    ],
    sigma: Annotated[
        float,
        typer.Option(
            help="Noise level, in the units of the stored image (0…255 for an 8-bit PNG). "
            "For a prior with an objective (box, l1, tv) the weight is its square."
        ),
    ],
    prior: Annotated[str, typer.Option(help="Name of the prior, as listed by `fouriscope priors`.")] = "bm3d",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Parameter of the prior as key=value, with a TOML value. Can be repeated."
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Denoise one image with a prior."""
    for path in (image, out):
        if path.suffix.lower() not in FORMATS:
            raise InvalidInputError(f"{path}: expected a file that ends in {', '.join(FORMATS)}")
    if out.exists() and not force:
        raise InvalidInputError(f"{out} exists; choose another name, or replace it with --force")
    if not out.parent.is_dir():
        raise InvalidInputError(f"{out}: there is no folder {out.parent}; make it first")
    sigma = check_sigma(sigma)
    denoiser = _build(prior, option or [])
    stored = read_image(image)
    if out.suffix.lower() == ".png" and stored.dtype not in (np.uint8, np.uint16):
        raise InvalidInputError(
            f"{out}: a PNG holds 8 or 16 bits, but {image.name} holds {stored.dtype}; write .tif or .npy instead"
        )
    started = time.perf_counter()
    denoised = denoiser.denoise(_as_float(stored), sigma)
    seconds = time.perf_counter() - started
    write_image(out, denoised, stored.dtype)
    rows, columns = stored.shape
    console_of(quiet).print(
        f"{escape(str(out))}: {rows} × {columns} pixels, {denoiser.name} at sigma = {sigma:g}, {seconds:.2f} s"
    )


def show_priors() -> None:
    """List the priors and say which of them can be used on this machine."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("name", "what it is", "objective", "here"):
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "objective"))
    for info in installed_priors():
        here = info.missing or ("available, from Python" if info.from_python else "available")
        table.add_row(info.name, escape(info.description), "yes" if info.has_objective else "no", escape(here))
    console_of().print(table, soft_wrap=False)


def parse_options(options: Sequence[str]) -> dict[str, Any]:
    """``["levels=3", "mode=hard"]`` → ``{"levels": 3, "mode": "hard"}``: TOML values, or words as they stand.

    >>> parse_options(["levels=3", "mode=hard", "isotropic=true"])
    {'levels': 3, 'mode': 'hard', 'isotropic': True}
    """
    parsed: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        key = key.strip()
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", key) or key == "name":
            raise InvalidInputError(f"--option expects key=value, such as --option patch_size=7, got {option!r}")
        if key in parsed:
            raise InvalidInputError(f"--option {key} was given twice; give it once")
        parsed[key] = value_or_word(text)
    return parsed


def _build(name: str, options: Sequence[str]) -> Prior:
    parameters = parse_options(options)
    try:
        return prior_from_spec({**parameters, "name": name})
    except InvalidInputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:  # a parameter of the wrong kind, such as accuracy="high"
        raise InvalidInputError(f"the prior {name!r} cannot be made with {parameters}: {error}") from error


def read_image(path: Path) -> NDArray[Any]:
    """A grey image as it is stored: real, finite, two-dimensional."""
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such image")
    image = _READERS[path.suffix.lower()](path)
    if image.ndim == 3 and image.shape[-1] in (2, 3, 4):
        raise InvalidInputError(f"{path}: expected a grey image, got colour, shape {image.shape}; convert it first")
    if image.dtype.kind == "b":
        raise InvalidInputError(f"{path}: expected grey values, got only true and false")
    if image.dtype.kind in "ui":
        image = image.astype(image.dtype.newbyteorder("="))
    elif image.dtype.kind == "f":
        image = image.astype(np.float32 if image.dtype.itemsize <= 4 else np.float64)
    try:
        check_image(_as_float(image) if image.dtype.kind in "uif" else image)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    return image


def _as_float(image: NDArray[Any]) -> NDArray[Any]:
    """Up to 16 bits fit into single precision; larger whole numbers need double."""
    if image.dtype.kind == "f":
        return image
    return image.astype(np.float32 if image.dtype.itemsize <= 2 else np.float64)


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        image = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _unreadable(path, "a .npy array", error) from error
    if not isinstance(image, np.ndarray):
        image.close()
        raise InvalidInputError(f"{path}: expected one array, got an archive of several; save one with np.save")
    return image


def _read_tiff(path: Path) -> NDArray[Any]:
    try:
        with reading(path, "a page"):
            return read_tiff(path)
    except InvalidInputError as error:
        raise _unreadable(path, "a TIFF", error) from error


def _read_png(path: Path) -> NDArray[Any]:
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            if picture.mode not in ("L", "I;16", "I;16B", "I"):
                raise InvalidInputError(
                    f"{path}: expected a grey image, got one of mode {picture.mode}; convert it first"
                )
            image = np.asarray(picture)
    except (ValueError, OSError, SyntaxError, struct.error, Image.DecompressionBombError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise _unreadable(path, "a PNG", error) from error
    # Some versions of Pillow read 16 bits into 32.
    return image if image.dtype == np.uint8 else image.astype(np.uint16)


_READERS = {".npy": _read_npy, ".tif": _read_tiff, ".tiff": _read_tiff, ".png": _read_png}


def _unreadable(path: Path, what: str, error: BaseException) -> InvalidInputError:
    return InvalidInputError(f"{path}: cannot be read as {what} ({(str(error).splitlines() or ['?'])[0]})")


def write_image(path: Path, image: NDArray[Any], stored_as: np.dtype[Any]) -> None:
    """Write the denoised image: a PNG rounded and clipped to the depth of the input, TIFF and npy as floats."""
    buffer = io.BytesIO()
    if path.suffix.lower() == ".png":
        from PIL import Image

        rounded = np.clip(np.rint(image), 0, np.iinfo(stored_as).max).astype(stored_as)
        Image.fromarray(rounded).save(buffer, format="PNG")
    elif path.suffix.lower() == ".npy":
        np.save(buffer, image, allow_pickle=False)
    else:
        import tifffile

        tifffile.imwrite(buffer, image, photometric="minisblack")
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
