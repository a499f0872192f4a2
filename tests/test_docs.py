"""The documents keep up with the code: settings, commands, doors, versions and links."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import datetime
from importlib import metadata
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

PROJECT = Path(__file__).resolve().parent.parent
# Pages that `make docs` writes are no part of the repository.
MADE = {
    PROJECT / "docs" / "reference" / f"{name}.md"
    for name in "changes command reporting rest".split()
}
PAGES = sorted(
    {*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("examples/*.md")} - MADE
)


def words_of(pages: list[Path]) -> str:
    return "\n".join(page.read_text() for page in pages)


def settings_read() -> set[str]:
    """The names of environment variables the code reads."""
    sources = [PROJECT / "manage.py"]
    for package in (
        "config",
        "llm",
        "settings_app",
        "palace",
        "bench",
        "api",
        "chat",
        "locipalace",
    ):
        sources += (PROJECT / package).rglob("*.py")
    names = re.findall(r'"(LOCI_[A-Z0-9_]+|DATABASE_URL|REDIS_URL)"', words_of(sources))
    return set(names)


def commands() -> list[str]:
    found = PROJECT.glob("*/management/commands/*.py")
    return sorted(path.stem for path in found if not path.stem.startswith("_"))


def test_settings_are_found():
    assert {"LOCI_HOME", "LOCI_LLM_MODEL", "DATABASE_URL"} <= settings_read()


@pytest.mark.parametrize("name", sorted(settings_read()))
def test_every_setting_is_documented(name):
    assert f"| `{name}` |" in (PROJECT / "docs" / "configuration.md").read_text()


def test_no_setting_is_documented_that_is_not_there():
    documented = re.findall(r"`(LOCI_[A-Z0-9_]+)`", words_of(PAGES))
    assert set(documented) <= settings_read()


@pytest.mark.parametrize("name", commands())
def test_every_command_is_documented(name):
    pages = words_of(PAGES)
    assert f"`{name}`" in pages, "docs/configuration.md has a table of them."


def test_the_version_is_the_newest_in_the_changes():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["version"] == settings.VERSION


def test_every_version_in_the_changes_has_its_day():
    changes = (PROJECT / "CHANGELOG.md").read_text()
    newest, *released = re.findall(r"^## [\d.]+ ?(.*)$", changes, re.MULTILINE)
    days = [datetime.strptime(said, "(%d %B %Y)").date() for said in released]  # noqa: DTZ007
    assert len(days) > 5
    assert days == sorted(days, reverse=True)
    if newest != "(not released yet)":
        assert datetime.strptime(newest, "(%d %B %Y)").date() >= days[0]  # noqa: DTZ007


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def anchors_of(page: Path) -> set[str]:
    """Of its headings, as repositories' pages and ours have them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", each)) for each in headings]
    return {each.strip().lower().replace(" ", "-") for each in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_to_a_heading_that_is_there(page):
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text())
    missing = [
        f"{link}#{anchor}"
        for link, anchor in links
        if (target := page.parent / link if link else page).suffix == ".md"
        and anchor not in anchors_of(target)
    ]
    assert missing == []


def section_of(page: str, anchor: str) -> str:
    """From the heading of that anchor to the next one that is not below it."""
    for heading in re.finditer(r"^(#+) (.+)$", page, re.MULTILINE):
        if re.sub(r"[^\w\- ]", "", heading[2]).lower().replace(" ", "-") == anchor:
            after = page[heading.end() :]
            return re.split(rf"^#{{1,{len(heading[1])}}} ", after, flags=re.MULTILINE)[0]
    raise LookupError(anchor)


def test_figures_at_a_glance_are_those_of_the_sections_they_link_to():
    page = (PROJECT / "docs" / "benchmarks.md").read_text()
    checked, missing = 0, []
    for line in section_of(page, "at-a-glance").splitlines():
        linked = "".join(section_of(page, each) for each in re.findall(r"\]\(#([\w-]+)\)", line))
        figures = re.findall(r"\*\*([\d.,]+)\*\*|(?<![\d*])(\.\d+)", line)
        for figure in map("".join, figures):
            checked += 1
            if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d)", linked):
                missing.append((figure, line))
    assert missing == []
    assert checked > 30


def test_every_page_is_in_the_contents():
    contents = (PROJECT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^([\w/.-]+)$", contents, re.MULTILINE))
    pages = {
        str(page.relative_to(PROJECT / "docs").with_suffix(""))
        for page in {*PROJECT.glob("docs/**/*.md"), *MADE}
        if not page.name.startswith("0") and page.name != "index.md"
    }
    assert pages == listed


@pytest.mark.exhaustive
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    subprocess.run([*command, "docs", str(tmp_path)], cwd=PROJECT, check=True)
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]*(?:src|href)=\"(https?:[^\"]*)", page.read_text()
        )
        assert fetched == [], page
    assert "create_chat_completion" in (tmp_path / "reference" / "rest.html").read_text()
    assert "true_at" in (tmp_path / "reference" / "python.html").read_text()


def test_every_decision_is_listed():
    decisions = {page.name for page in (PROJECT / "docs" / "adr").glob("0*.md")}
    listed = (PROJECT / "docs" / "adr" / "README.md").read_text()
    assert decisions == set(re.findall(r"\]\((0[^)]+)\)", listed))


def test_every_target_of_make_explains_itself():
    makefile = (PROJECT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    explained = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert sorted(phony.split()) == sorted(explained)


PACKAGES = "api|chat|config|isolation|language|llm|palace|settings_app"


def named_in_walks() -> list[str]:
    """Every dotted name in "Where to read": the walks through the code, and a table of places."""
    page = (PROJECT / "docs" / "architecture.md").read_text()
    walks = page.split("## Where to read")[1].split("\n## ")[0]
    return re.findall(rf"`((?:{PACKAGES})\.[\w.]+)`", walks)


def test_the_walks_are_found():
    assert len(named_in_walks()) > 30


def test_recall_is_read_in_twelve_files():
    page = (PROJECT / "docs" / "architecture.md").read_text()
    walk = page.split("**A question to its hits**")[1].split("\n**")[0]
    modules = set(re.findall(r"`((?:api|palace)\.[\w.]+)\.\w+`", walk))
    assert {"palace.recall.retrieval", "palace.recall.semantic"} <= modules
    assert len(modules) <= 12


@pytest.mark.parametrize("name", named_in_walks())
def test_what_the_walks_name_is_there(name):
    assert callable(import_string(name))


def test_the_read_me_is_short():
    assert len((PROJECT / "README.md").read_text().splitlines()) <= 120


def _licence(package: str) -> str | None:
    """As the package states it; None if it is not installed on this system."""
    try:
        stated = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return None
    if expression := stated.get("License-Expression"):
        return expression
    approved = "License :: OSI Approved :: "
    names = [each for each in stated.get_all("Classifier", []) if each.startswith(approved)]
    return " / ".join(each.removeprefix(approved) for each in names) or stated["License"]


def test_the_licence_of_each_locked_package_is_listed():
    lock = (PROJECT / "requirements.lock").read_text()
    packages = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    stated = {name: licence for name in packages if (licence := _licence(name))}
    page = (PROJECT / "docs" / "licences.md").read_text()
    assert dict(re.findall(r"^\| `(.+)` \| (.+) \|$", page, re.MULTILINE)) == stated
