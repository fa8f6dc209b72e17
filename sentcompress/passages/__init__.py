"""Documents cut into passages and made into queries, with some held out, for split-documents and other stages.

- `sentences`, `cutting`: passages of whole sentences.
- `words`, `frequencies`: the words of a text, and in how many documents each occurs.
- `queries`: queries made from the text; `query_copies`: short texts made from long ones, as an augmentation.
- `scan`: reads the documents once and keeps their passages in a temporary file.
- `holdout`: which documents and passages are held out, by hashes.
- `querylog`: the user's own queries.
- `search_collection`: the texts that `search` goes through.
- `writing`: the training texts, the held-out collection and its queries.
"""
