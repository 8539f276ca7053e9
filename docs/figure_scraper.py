"""Saves the figures of gallery examples, which are made without pyplot."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def save_figures(block, block_vars, gallery_conf):
    """Save every figure that a block of an example has made since the block before."""
    names = block_vars["example_globals"]
    saved = names.setdefault("__saved_figures__", set())
    figures = [value for value in names.values() if isinstance(value, Figure) and id(value) not in saved]
    paths = []
    for figure, path in zip(figures, block_vars["image_path_iterator"], strict=False):
        figure.savefig(path, dpi=110)
        saved.add(id(figure))
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
