"""sentcompress: large sentence encoders in, small fast ones out, with the loss measured."""

__version__ = "0.1.0"
