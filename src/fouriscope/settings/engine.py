"""What computes, and where: the section [engine]."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.engines import check_names
from fouriscope.errors import InvalidInputError
from fouriscope.settings.base import Section


class Engine(Section):
    """[engine]: what computes misfits and gradients (docs/engines.md).

    >>> Engine(name="torch", device="cuda:1").device
    'cuda:1'
    """

    name: Literal["auto", "numba", "scipy", "torch"] = Field(
        default="auto", description='"auto" is numba if it is installed, otherwise scipy; it is never torch'
    )
    device: str = Field(default="cpu", description='for torch: "cpu", "cuda", "cuda:1" or "mps"')
    deterministic: bool = Field(default=False, description="for torch: the same bits each time, somewhat slower")
    memory: int | str | None = Field(
        default=None,
        description='for torch: the most memory that it may use on its device, such as "4GB"; the default is three '
        "quarters of the free memory",
    )

    @field_validator("device")
    @classmethod
    def _is_a_device(cls, device: str) -> str:
        try:
            check_names("auto", device)
        except InvalidInputError as error:
            raise ValueError(str(error).removeprefix("device ").partition(", got ")[0]) from None
        return device

    @field_validator("memory")
    @classmethod
    def _is_a_size(cls, memory: int | str | None) -> int | str | None:
        if memory is not None:
            parse_bytes(memory)
        return memory

    @model_validator(mode="after")
    def _only_torch_has_devices(self) -> Engine:
        if self.name != "torch" and self.device != "cpu":
            raise ValueError(f'device = "{self.device}" is for name = "torch", and the name is "{self.name}"')
        return self
