"""Mining of hard negatives: texts that a model ranks close to a query and that do not answer it.

- `origins`: the sources of queries and positives: a file of pairs, a judged collection, triplets of a sentence table.
- `gathering`: reads a source into numbered queries, pairs, and the corpus that is searched.
- `miner`: searches the corpus for each query and chooses the negatives of each pair.
- `table`: writes queries, positives and negatives as a sentence table with triplets.
- `sharded_mining`: the files of mining in shards, and their merge.

This package works on texts, row numbers and NumPy arrays. Models are out of bounds: vectors come from a function that
`stages/mine_negatives.py` passes in, and torch is never imported. The formats of files belong to `corpora`, and search
indexes to `evaluation`.
"""
