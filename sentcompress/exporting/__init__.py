"""Exporting models: the sentence-transformers folder, ONNX graphs, quantisation, the model card, and verification.

`formats` lists the formats. Of those in `graph_formats`, `onnx` writes the float32 graph, `dynamic_quantisation` makes
the int8 graph of it, with `outliers` and `packed_weights`, and `static_quantisation` fixes the ranges of its
activations by `calibration`. `graph_reader` runs a graph, and `graph_embedder` makes it a source of vectors. Nothing is
trained or evaluated here; the card shows the results of evaluations.
"""
