"""Fast encoding of texts into vectors, and vectors on disk.

- `batches`, `engine`, `compute_plan`: an encoder at full speed.
- `embedder`: what evaluations get vectors from; `embedder_sources`: finds one by name, with `vector_cache`.
- `sides`: the embedders of queries and of documents; `stored_documents`: vectors of a folder in place of a model's;
  `embedded_texts`: the vectors of an evaluation, by text.
- `npy_files`: the vectors of a table, one file for each of its files.
- `text_vectors`, `vector_folder`, `storage`: what `encode` writes, with ids.
- `sharded_vectors`, `sharded_folder`: the vectors of a table and a folder of `encode` in shards, joined by `merge`.
- `sharing`, `evaluation_in_ranks`: texts that ranks encode together.
- `content_words`: embeddings in two passes; `token_counts`: truncated texts; `onednn`: packed weights on a CPU.

All code that needs vectors of texts uses an `Embedder` or the `EncodeEngine`. This package does not train, and uses an
encoder only through the interface `models.encoder.Encoder`.
"""
