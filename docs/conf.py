"""How Sphinx builds the site; `python tools/build_docs.py` stages the pages and calls it."""

import inspect
import sys
import warnings
from pathlib import Path

import priory

sys.path.insert(0, str(Path(__file__).parent))  # figure_scraper

project = "Priory"
author = "the Priory developers"
copyright = author
version = release = priory.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["templates", "gallery/*.py", "**/GALLERY_HEADER.rst", "figures/*.py", "**/sg_execution_times.rst"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.header",  # the changelog jumps from the title to the third level
    "config.cache",  # functions in this file cannot be pickled, so nothing is cached
]

templates_path = ["templates"]
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"Priory {version}"
html_show_sourcelink = False
html_copy_source = False
html_favicon = "static/favicon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "header_links_before_dropdown": 3,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}

GALLERY_ORDER = [  # of the course
    "candy_bags", "many_hypotheses", "theta", "families", "nomogram", "parameters", "dependence", "words", "iris",
    "scores", "sigmoid", "lines",
]  # fmt: skip


def order_gallery(file_name):
    """Where an example stands in the gallery."""
    return GALLERY_ORDER.index(file_name.removeprefix("plot_").removesuffix(".py"))


sphinx_gallery_conf = {
    "within_subsection_order": order_gallery,
    "examples_dirs": "gallery_source",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "image_scrapers": ("figure_scraper.save_figures",),
    "reset_modules": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e6,
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "write_computation_times": False,
}

warnings.filterwarnings("ignore", module="sphinx_gallery")


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes bring along."""
    module = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", "") or ""
    return True if module.startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited)
