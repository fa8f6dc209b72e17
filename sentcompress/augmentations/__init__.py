"""Augmentation: new sentences made from those of a sentence table.

- `base`: the protocols of an augmenter and of its specification, which is sent to worker processes.
- `wordnet`, `synonyms`, `function_words`: WordNet synonyms through nlpaug.
- `back_translation`: chooses a translator: `apertium` (rule-based) or `neural_translation` (nlpaug and transformers).
- `workers`, `table`: augment a table on all cores, piece by piece, so that an interrupted run can resume.
- `sharded_table`: the same in shards on several machines.

The sentence table itself belongs to `corpora`, which must not import this package. What a user may request, and what
happens if a translator is missing, is decided in `stages/augment.py`.
"""
