"""Training: one loop for all methods, with its data, dev scores, checkpoints and deployment.

`loop` trains, `batches` and `views` make its tensors, `dev` and `retrieval_dev` score, `checkpoint` makes it resumable,
`deploy` saves the result and reads it back. The equations are in `methods`; the loop depends on no particular method or
encoder.
"""
