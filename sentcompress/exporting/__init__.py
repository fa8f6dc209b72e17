"""Exporting models: the sentence-transformers folder, ONNX graphs, quantisation, the model card, and verification.

Nothing is trained or evaluated here; the card shows the results of evaluations.
"""
