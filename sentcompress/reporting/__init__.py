"""The report of a work directory: all results of all models as an HTML page, as Markdown and as a short table.

Evidence gathering, the sections, and the HTML and Markdown renderers live here. Nothing is measured here: every value
comes from an artifact. Files are written by the stage.
"""
