"""Measuring: arrays in, `Score` records out.

Here live the metrics, the bootstrap, the protocols of the evaluations, the records that they are written down in, and
the table that every evaluation is shown with. No torch, no models and no files of the user: stages read those and hand
over arrays. Nothing here prints.
"""
