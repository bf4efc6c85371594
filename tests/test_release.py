"""What is said of the package outside of it: versions, dependencies, citation, workflows, the container."""

import re
import tomllib
from pathlib import Path

import pytest

import onbmacf

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def content_of(path):
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text("utf-8"))


def test_every_file_has_the_same_version():
    cited, recipe = content_of("CITATION.cff")["version"], content_of("release/conda/recipe.yaml")["context"]["version"]
    assert {cited, recipe, onbmacf.__version__} == {PROJECT["version"]}


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    recipe = content_of("release/conda/recipe.yaml")["requirements"]
    assert [one for one in recipe["run"] if one != "python"] == [floor.replace(">=", " >=") for floor in needed()]
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {floor.replace(">=", " >=") for floor in built} <= set(recipe["host"])


def needed():
    return PROJECT["dependencies"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_by_commit_and_have_no_right_that_they_do_not_need(path):
    content = content_of(path)
    assert content["permissions"] == {}
    steps = [step for job in content["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", "a@" + "0" * 40)), step
        assert "${{ github.event" not in step.get("run", ""), step
    may_write = {job for job, how in content["jobs"].items() if "write" in how["permissions"].values()}
    assert may_write <= {"publish"}


def test_the_targets_and_files_that_pages_name_are_there():
    targets = set(re.findall(r"^([\w-]+(?: [\w-]+)*):", (ROOT / "Makefile").read_text("utf-8"), flags=re.M))
    targets = {word for words in targets for word in words.split()}
    pages = ("CONTRIBUTING.md", "RELEASING.md", "docs/versions.md", ".github/pull_request_template.md")
    text = "\n".join((ROOT / page).read_text("utf-8") for page in pages)
    named = {word for words in re.findall(r"`make ([a-z -]+)`", text) for word in words.split()}
    assert "test-wheel" in named
    assert named <= targets


def test_the_container_on_the_page_is_the_one_that_is_kept():
    kept = (ROOT / "release" / "Containerfile").read_text("utf-8")
    assert f"```dockerfile\n{kept}```" in (ROOT / "docs" / "operate.md").read_text("utf-8")
    assert "USER 10001" in kept
    assert "HEALTHCHECK" in kept


def headings(page):
    """Return the anchors of a page, as the site and the repository make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.M)
    return {re.sub(r"[^\w -]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_or_a_heading_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'href="([^"]+)"', text):
        path, _, anchor = link.partition("#")
        if link.startswith("http"):
            continue
        found = (page.parent / path) if path else page
        assert found.exists() or (ROOT / "docs" / "examples" / found.name).exists(), link
        assert not anchor or found.suffix != ".md" or anchor in headings(found), link
