"""Builds the project's Markdown as a site, from its root: python3 -m sphinx -W -c docs . build/docs"""

project = "scandsl"
author = "the scandsl authors"
copyright = "the scandsl authors"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
# Pages link to each other where they lie, so that the links hold on the site and in the repository alike.
root_doc = "docs/index"
include_patterns = ["docs/*.md", "README.md", "ops/*/README.md", "bench/README.md", "examples/data/README.md"]
exclude_patterns = ["build"]
# Colons open directives, so that backticks hold quoted code only; scripts/check_docs.py reads the latter.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_title = "scandsl"
