"""Measures speed and memory of models in every runtime that they support, alternating between them.

Results are returned, not stored. Quality is measured by `evaluation`.
"""
