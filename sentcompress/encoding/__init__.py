"""From texts to vectors at full speed, and vectors on disk: batches, the engine, shards, the cache of evaluations.

Everything that needs vectors of texts asks an `Embedder` or the `EncodeEngine` for them. Nothing here trains, and
nothing reaches inside an encoder: what depends on its kind is a member of `models.encoder.Encoder`.
"""
