"""Several processes that share one command under torchrun (docs/ranks.md).

launch     whether this process is one of several ranks: the variables that torchrun sets; loads no torch
alone      what stages call, and how a single process answers
meeting    what ranks tell each other through torch's store, and which of them has ended
group      torch.distributed: ranks that join, and tensors that they gather and sum
builds     one artifact that the first rank writes and all ranks read
"""
