"""``python -m scripts.reference``: write the pages of docs/reference again, from the code."""

from __future__ import annotations

from .pages import FOLDER, pages


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(pages())} pages to docs/{FOLDER.name}")


if __name__ == "__main__":
    main()
