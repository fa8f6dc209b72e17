"""Evaluation: arrays in, `Score` records out.

The metrics, the bootstrap, the evaluation protocols, the score records, and the tables that show them live here.
Torch, models and user files do not: stages read them and pass arrays. Nothing here prints.
"""
