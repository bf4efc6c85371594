"""How the pages of this folder become a site: `make docs`."""

from onbmacf import __version__

project = "onbmacf"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples/*.md", "examples/*.py"]
html_theme = "alabaster"
html_theme_options = {"description": "Which small, feasible change would make your model say otherwise?"}
html_extra_path = ["examples"]
html_copy_source = False
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = True
nitpicky = False
