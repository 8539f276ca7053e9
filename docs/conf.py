"""How Sphinx builds the site; `python tools/build_docs.py` stages the pages and calls it."""

import html
import inspect

from docutils import nodes

import priory

project = "Priory"
author = "the Priory developers"
copyright = author
version = release = priory.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["templates", "figures/*.py", "static"]
myst_enable_extensions = ["deflist", "dollarmath"]
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
html_math_renderer = "katex"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "header_links_before_dropdown": 3,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}


def write_formula(writer, node):
    """A formula as text, which static/math.js typesets."""
    tag = "div" if isinstance(node, nodes.math_block) else "span"
    writer.body.append(f'<{tag} class="formula">{html.escape(node.astext())}</{tag}>')
    raise nodes.SkipNode


def add_scripts(app, page_name, template, context, doctree):
    """Load scripts where they are needed: KaTeX for formulas, and the course's own for its figures and exercises."""
    if doctree is not None and next(
        doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)), None
    ):
        app.add_css_file("katex/katex.min.css")
        app.add_js_file("katex/katex.min.js", loading_method="defer")
        app.add_js_file("math.js", loading_method="defer")
    if page_name.startswith("course/"):
        app.add_css_file("course/figures.css")
        app.add_js_file("course/course.js", type="module")


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes bring along."""
    module = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", "") or ""
    return True if module.startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("html-page-context", add_scripts)
    app.add_html_math_renderer("katex", (write_formula, None), (write_formula, None))
