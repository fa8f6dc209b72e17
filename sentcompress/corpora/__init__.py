"""Data that users bring, read in bounded memory into sentences, pairs, triplets, test sets and vectors.

Files, from bytes to records:
- `byte_streams`: files, pipes and standard input, decompressed with limits.
- `text_files`: lines of text, bad lines, limits on text in memory.
- `delimited`, `parquet_pages`, `parquet_rows`: rows of csv, tsv and Parquet files.
- `records`, `readers`: the sentences of a row and their relation; files of every format.
- `column_names`: known names of columns in another case.
- `document`, `document_files`, `markup`: documents of files and folders; Markdown and reStructuredText as sections.
- `documents_artifact`: the files of an artifact of kind `documents`, and its name.
- `hub`, `inputs`: data sets on the hub; inputs by name, with digests.

What they become:
- `sentence_table`, `originals`: the sentence table, and its first part made from the inputs.
- `text_sample`: a sample of sentences of any size of input; `mixing`: inputs mixed by words.
- `quantizer_texts`: the texts that a quantizer is fitted on, and the held-out ones that it is chosen by.
- `sts`, `sts_sources`, `transfer`: test sets of graded pairs and of classification tasks.
- `collections`, `collection_folders`, `pairs`, `entities`: retrieval tasks; `dev_collection`: a sample of one.
- `search_texts`: passages and queries without judgements; `named_texts`: texts of files and artifacts by name.
- `identified_texts`: texts with their ids; `text_store`: such texts in one file, read by row.
- `vector_file`: vectors made by another program.

A reader turns a file into plain Python and NumPy values, and every fault into an `InputError` with file and line.
Models, scores and augmentations do not belong here, and torch is never imported.
"""
