"""The report of a work directory: what was measured of all models, as a page, as Markdown and as a short table.

Here live what counts as evidence, the sections, and the two renderings. Nothing is measured or computed anew here:
every figure has an artifact behind it. Files are written by the stage, not here.
"""
