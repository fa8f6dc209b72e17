"""Models: found by name, checked, loaded, cut into students, changed and saved.

`Encoder` is what the rest of the package knows of a model; `families` is the one place that knows architectures, and
`layout` the one that knows model folders. Texts are run through a model here only to measure a teacher that a student
is made of; encoding at full speed is `encoding`. Nothing here trains, evaluates or knows a command. `token_batches`,
`text`, `shape`, `model_files` and `library_errors` do without torch.
"""
