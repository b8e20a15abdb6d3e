"""How the site is made: `make docs` writes docs/_build/html; nothing is fetched, and a warning is
an error.
"""

import os
import sys
import tomllib
from pathlib import Path

import jaxbandits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project, release = PROJECT["name"], jaxbandits.__version__
author = copyright = PROJECT["authors"][0]["name"]
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "mathml",
    "thumbnails",
]
exclude_patterns = [
    "_build",
    "gallery",
    "examples",
    "auto_gallery/**/*.ipynb",
    "auto_gallery/*.ipynb",
    "**/.ipynb_checkpoints",
    "**/jupyter_execute",
]

# ---- looks

html_theme = "furo"
html_title = f"{project} {release}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"light_css_variables": {"font-stack": "system-ui, sans-serif"}}
html_math_renderer = "mathml"  # the browser's own: no script, no font, no network
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
highlight_language = "text"  # indented blocks are commands
smartquotes = False  # `--policies` is no dash
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# ---- pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
os.environ["TQDM_DISABLE"] = "1"  # no bars in the outputs of slow cells
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

# ---- the API, from the docstrings

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = (
    False  # it reads sources, and options of `compare` stand in its signature only
)
python_maximum_signature_line_length = 88
autosummary_generate = False  # api_pages writes the pages
# Of tables that stand behind their module's own text
suppress_warnings = ["autosummary.import_cycle"]
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Deviations", "Source"]

# Names of others. They are looked up in what lies here; DOCS_ONLINE=1 asks their sites first.
KNOWN = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "jax": "https://docs.jax.dev/en/latest",
    "xarray": "https://docs.xarray.dev/en/stable",
    "matplotlib": "https://matplotlib.org/stable",
}
ASKED = (None,) if os.environ.get("DOCS_ONLINE") else ()
intersphinx_mapping = {
    name: (url, (*ASKED, str(HERE / "_build" / "inventories" / f"{name}.inv")))
    for name, url in KNOWN.items()
}
intersphinx_timeout = 5

# ---- the gallery

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "parallel": 2,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
}
