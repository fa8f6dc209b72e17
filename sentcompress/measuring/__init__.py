"""Speed and memory of models in the runtimes that they can run in, measured side by side.

Quality is `evaluation`. Nothing here is recorded: what was measured is returned.
"""
