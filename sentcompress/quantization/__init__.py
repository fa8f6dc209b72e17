"""Compact storage of vectors: a rotation, a number of dimensions, and a number format with fixed ranges."""
