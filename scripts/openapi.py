"""``make openapi``: the API's document, generated and put where it is served from."""

from __future__ import annotations

from handlers.web.openapi_build import text
from handlers.web.openapi_document import FILE


def main() -> None:
    FILE.write_text(text(), encoding="utf-8")
    print(f"wrote {FILE.name}, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
