"""Find, check, load, modify and save models, and build students from them.

The rest of the package uses a model through `Encoder`. Only `families` knows architectures, and only `layout` knows
model folders. This package encodes texts only to initialise a student from its teacher; `encoding` does it at full
speed. It does not train or evaluate, and knows no commands. `token_batches`, `text_settings`, `shape`,
`model_files`, `weight_formats`, `threads` and `library_errors` do not import torch.
"""
