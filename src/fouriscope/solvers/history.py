"""What happened, iteration by iteration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Record:
    """One iteration.

    Attributes
    ----------
    iteration
        Counted from 1.
    frames_seen
        Frames used so far, repeated ones counted again.
    seconds
        Time spent in the solver so far; callbacks are not counted.
    misfit
        d over this iteration's minibatch, at the point where its gradient was taken.
    residual
        ‖P(s) − s‖ / ‖P(s) − mean‖, with P the whole iteration: gradient step and denoiser; 0 at a fixed point. (No
        objective is reported, because many denoisers have none.) Of a mean of estimates, how much it has changed.
    step
        γ.
    strength
        λ of the prior; with several images, of the first.
    snr, snr_raw
        dB against the truth, if it is known: without the unobservable constant, and with it. NaN otherwise.
    frames_arrived
        In a live run, the frames that had arrived; NaN if all were there from the beginning.
    averaged
        Of how many estimates the object is the mean; NaN if it is the last one.
    """

    iteration: int
    frames_seen: int
    seconds: float
    misfit: float
    residual: float
    step: float
    strength: float
    snr: float = math.nan
    snr_raw: float = math.nan
    frames_arrived: float = math.nan
    averaged: float = math.nan

    def as_dict(self) -> dict[str, Any]:
        """Plain finite numbers, as JSON can hold them; those that are not known are left out."""
        return {key: value for key, value in asdict(self).items() if math.isfinite(value)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        """The record that :meth:`as_dict` wrote; what was left out is NaN again."""
        return cls(**(UNKNOWN | values))


# A record of which nothing is known; made once, since there are as many records as iterations.
UNKNOWN: dict[str, Any] = {f.name: math.nan for f in fields(Record)}


class History:
    """The records of a run, in order; columns by name.

    Parameters
    ----------
    records
        One per iteration.

    Examples
    --------
    >>> history = History([Record(1, 60, 0.1, 2.0, 0.5, 100.0, 0.0), Record(2, 120, 0.2, 1.0, 0.2, 100.0, 0.0)])
    >>> history["misfit"]
    array([2., 1.])
    >>> history
    History: 2 iterations in 0.2 s, misfit 2 → 1
    """

    def __init__(self, records: list[Record] | None = None) -> None:
        self.records = list(records or [])

    def append(self, record: Record) -> None:
        self.records.append(record)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        if not self.records:
            return "History: no iteration yet"
        first, last = self.records[0], self.last
        return (
            f"History: {len(self)} iterations in {last.seconds:.2g} s, misfit {first.misfit:.3g} → {last.misfit:.3g}"
            + (f", SNR {last.snr:.1f} dB" if math.isfinite(last.snr) else "")
        )

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def last(self) -> Record:
        return self.records[-1]

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        if column not in (names := [f.name for f in fields(Record)]):
            raise KeyError(f"history has the columns {', '.join(names)}, not {column!r}")
        return np.array([getattr(record, column) for record in self.records], dtype=np.float64)

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """All columns by name."""
        return {f.name: self[f.name] for f in fields(Record)}
