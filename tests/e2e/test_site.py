"""``make docs``: the site builds without a warning, and its pages fetch nothing from a network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MKDOCS: Final = Path(sys.prefix) / "docs" / "bin" / "mkdocs"
"""Of its own environment, which `make check` and `make docs` make."""
FETCHED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


def build(config: Path, to: Path) -> subprocess.CompletedProcess[str]:
    assert MKDOCS.exists(), "make docs"
    return subprocess.run(
        [str(MKDOCS), "build", "--strict", "--config-file", str(config), "--site-dir", str(to)],
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", made)
    assert done.returncode == 0, done.stderr
    return made


def test_the_command_is_the_one_that_is_tested() -> None:
    """With --quiet, mkdocs does not count warnings, and strict is not strict."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\t$(DOCS)/bin/mkdocs build --strict\n" in makefile


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name.replace("README", "index")).is_file(), name
    assert (site / "reference" / "webhooks.json").is_file()


@pytest.mark.parametrize(
    ("page", "why"),
    [("[x](nothing.md)", "nothing.md"), ("[x](index.md#nothing)", "nothing"), (None, "nav")],
)
def test_a_broken_link_and_a_page_outside_the_navigation_stop_it(
    tmp_path: Path, page: str | None, why: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Here\n\n{page or ''}\n", encoding="utf-8")
    if page is None:
        (tmp_path / "docs" / "lost.md").write_text("# Lost\n", encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    head, _ = config.split("\nnav:\n")
    (tmp_path / "mkdocs.yml").write_text(f"{head}\nnav:\n  - index.md\n", encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert why in done.stderr


# --- nothing is fetched -------------------------------------------------------------------------


class Fetched(HTMLParser):
    """The addresses that a browser asks for when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(FETCHED.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address):
            self.found.append(address)
        # The theme's script asks GitHub for the stars of a repository, and unpkg for diagrams.
        if given.get("data-md-component") == "source" or "mermaid" in (given.get("class") or ""):
            self.found.append(f"{tag} of the theme's script")


def fetched(text: str) -> list[str]:
    parser = Fetched()
    parser.feed(text)
    return parser.found


def test_no_page_and_no_style_fetches_from_a_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    found = {page.name: fetched(page.read_text(encoding="utf-8")) for page in pages}
    assert not {name: addresses for name, addresses in found.items() if addresses}
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", text), style.name


def test_what_is_fetched_is_found() -> None:
    page = """<link rel="preconnect" href="https://fonts.example.com"><script src="//a/b.js">
    </script><a href="https://c/">c</a><img src="d.png"><div data-md-component="source"></div>"""
    assert fetched(page) == ["https://fonts.example.com", "//a/b.js", "div of the theme's script"]
