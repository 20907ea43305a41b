"""Compiled code in the tests is never stale.

Numba caches a function by its own file, but inlines functions of other files: after an edit there, the old machine code
would be tested. A cache folder named after the sources of all kernels cannot be out of date.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent
KERNELS = sorted(path for path in (ROOT / "src").rglob("*.py") if "import njit" in path.read_text(encoding="utf-8"))
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in KERNELS)).hexdigest()[:12]
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".cache" / f"numba-{VERSION}")
