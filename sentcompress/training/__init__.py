"""Training: the one loop, and what it needs before, during and after a run.

`loop` trains, `batches` and `views` make its tensors, `dev` scores, `checkpoint` makes it resumable, `deploy` saves the
result and reads it back. Equations live in `methods`; the loop knows none of them, and no kind of encoder.
"""
