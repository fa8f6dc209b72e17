"""Fast encoding of texts into vectors, and vectors on disk.

- `batches`, `engine`, `compute_plan`: an encoder at full speed.
- `embedder`: what evaluations get vectors from; `embedder_sources`: finds one by name, with `vector_cache`.
- `npy_files`: the vectors of a table, one file for each of its files; `vector_folder`: what `encode` stores, with ids.
- `sharded_vectors`, `sharded_folder`: the same in shards, joined by `merge`; `sharing`: the same among ranks.

All code that needs vectors of texts uses an `Embedder` or the `EncodeEngine`. This package does not train, and uses an
encoder only through the interface `models.encoder.Encoder`.
"""
