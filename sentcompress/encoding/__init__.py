"""Fast encoding of texts into vectors, and vectors on disk: batches, the engine, shards, the cache of evaluations.

All code that needs vectors of texts uses an `Embedder` or the `EncodeEngine`. This package does not train, and uses an
encoder only through the interface `models.encoder.Encoder`.
"""
