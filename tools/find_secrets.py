"""Fail when a file holds what Cortex's own scanner takes for a secret: `python tools/find_secrets.py FILE...`."""

from __future__ import annotations

import sys
from pathlib import Path

from cortex_py.core.security.secrets.secrets import find_secrets


def main() -> int:
    findings = 0
    for name in sys.argv[1:]:
        text = Path(name).read_text("utf-8", errors="replace")
        for found in find_secrets(text):
            findings += 1
            print(f"{name}:{text.count(chr(10), 0, found.start) + 1}: {found.kind}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
