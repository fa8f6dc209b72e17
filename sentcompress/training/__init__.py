"""Training: one loop for all methods, with its data, dev scores, checkpoints and deployment.

`loop` trains, `schedule` says for how long and at which rate, `selection` keeps the best weights. `batches` and `views`
make the tensors, `dev`, `retrieval_dev` and `search_dev` score on the data of `given_dev`, `checkpoint` makes a run
resumable, `agreement` lets ranks do the same in each step, `deploy` saves the result and reads it back. The equations
are in `methods`; the loop depends on no particular method or encoder.
"""
