"""The description for PyPI: README.md with full addresses, because PyPI shows it without the files beside it.

Everything else about the package is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


def with_addresses(text: str, repository: str) -> str:
    """Turn links to files of this repository into addresses.

    >>> with_addresses("![a](docs/a.png) [b](docs/b.md#c) [d](#d)", "https://example.org")
    '![a](https://example.org/raw/main/docs/a.png) [b](https://example.org/blob/main/docs/b.md#c) [d](#d)'
    """
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:)", rf"\1{repository}/raw/main/", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!\w+:|#)", rf"\1{repository}/blob/main/", text)


if __name__ == "__main__":
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=with_addresses(readme, project["urls"]["Repository"]),
        long_description_content_type="text/markdown",
    )
