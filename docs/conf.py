"""How the pages of this folder become a site: `make docs`. Nothing in it is loaded from outside."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc, desc_annotation

import onbmacf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # notebook_pages
LONG = 100  # characters: a printed line beyond it is a sentence
RETURNED = [f"onbmacf.{name}" for name in ("BallCover", "Counterfactual", "Explanation", "Explanations", "Semifactual")]
RETURNED += ["onbmacf.Relaxation", "onbmacf.Status", "onbmacf.io.TrainedModel", "onbmacf.report.Report"]

project = html_title = "onbmacf"
version = release = onbmacf.__version__
extensions = [
    "myst_parser",
    "notebook_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["examples/*.md", "examples/*.py"]
suppress_warnings = ["myst.header", "myst.xref_missing"]  # pages also link to files of the repository outside of docs/
myst_heading_anchors = 3

# The look.
html_theme = "furo"
pygments_dark_style = "github-dark"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["examples"]
html_copy_source = False
html_show_copyright = html_show_sphinx = False
html_search_scorer = str(HERE / "search.js")  # decision records come after the other pages
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00527f", "color-brand-content": "#0065a0"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#7cc5ef"},
}

# Copy buttons: without prompts, and none on what a program prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

# The reference: numpydoc sections; one argument a line where a signature is long; types are in the text.
default_role = "py:obj"  # `name` in a docstring is code, and a link where it is documented here
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_preprocess_types = True
napoleon_use_rtype = False
napoleon_type_aliases = {name: f"~onbmacf.{name}" for name in onbmacf.__all__}
python_maximum_signature_line_length = 88


def list_the_records(app: Any, docname: str, source: list[str]) -> None:
    """Put the decision records below their index page in the sidebar; the page itself stays plain Markdown."""
    if docname == "decisions/README":
        source[0] += "\n\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def described_once(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out a property that the section "Attributes" of its class describes."""
    if what != "class" or not isinstance(member, property):
        return None
    owner = getattr(sys.modules[member.fget.__module__], member.fget.__qualname__.split(".")[0])
    return bool(re.search(rf"^ +{name} : ", owner.__doc__, flags=re.M)) or None


def without_constructor(app: Any, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """Leave out the arguments of classes that are only ever returned; their attributes are described."""
    return ("", None) if name in RETURNED else None


def types_beside_names(app: Any, doctree: Any) -> None:
    """Move an attribute's type from a field of its own to its name: `margin: float`."""
    for attribute in (entry for entry in doctree.findall(desc) if entry["objtype"] == "attribute"):
        for field_list in list(attribute.findall(nodes.field_list)):
            (paragraph,) = list(field_list.findall(nodes.paragraph))
            attribute[0] += desc_annotation("", "", nodes.Text(": "), *paragraph.children)
            field_list.parent.remove(field_list)


def wrap_sentences(app: Any, doctree: Any) -> None:
    """Mark printed sentences, whose lines may be broken; printed tables are not: they scroll."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in ("text", "console") and max(map(len, block.astext().splitlines())) > LONG:
            block["classes"].append("sentences")


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("source-read", list_the_records)
    app.connect("autodoc-skip-member", described_once)
    app.connect("autodoc-process-signature", without_constructor)
    app.connect("doctree-read", types_beside_names)
    app.connect("doctree-read", wrap_sentences)
