"""Writing a model for others: ONNX graphs, quantisation, the model card, and the proof that what was written is right.

No training and no measuring lives here; the card shows what evaluations found.
"""
