"""Builds the sample corpora of this folder from the hand-written parts in `handwritten/`."""
