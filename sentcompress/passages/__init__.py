"""Documents cut into passages and made into queries, with some held out: the pure parts of split-documents.

- `sentences`, `cutting`: passages of whole sentences.
- `words`, `frequencies`: the words of a text, and in how many documents each occurs.
- `queries`: queries made from the text.
- `scan`: reads the documents once and keeps their passages in a temporary file.
- `holdout`: which documents and passages are held out, by hashes.
- `querylog`: the user's own queries.
- `writing`: the training texts, the held-out collection and its queries.
"""
