from __future__ import annotations

import random

import numpy as np

from sentcompress.corpora.distinct import SentenceIndex, sentence_hashes


def test_rows_equal_those_of_a_dictionary() -> None:
    generator = random.Random(0)
    texts = [f"sentence {generator.randrange(3000)}" for _ in range(10_000)]
    index, known = SentenceIndex(), dict[str, int]()
    for start in range(0, len(texts), 700):
        batch = texts[start : start + 700]
        rows, new = index.assign(sentence_hashes(batch))
        first_seen = []
        for place, text in enumerate(batch):
            if text not in known:
                known[text] = len(known)
                first_seen.append(place)
        assert rows.tolist() == [known[text] for text in batch]
        assert new.tolist() == first_seen
    assert index.rows == len(known)


def test_a_limit_stops_new_rows_but_finds_old_ones() -> None:
    index = SentenceIndex()
    rows, new = index.assign(sentence_hashes(["a", "b", "a", "c", "b", "d"]), limit=2)
    assert rows.tolist() == [0, 1, 0, -1, 1, -1]
    assert new.tolist() == [0, 1]
    rows, new = index.assign(sentence_hashes(["e", "b"]), limit=2)
    assert rows.tolist() == [-1, 1]
    assert len(new) == 0


def test_hashes_are_stable_across_machines() -> None:
    # BLAKE2b-64 of the UTF-8 bytes, little-endian; resuming on another machine must find the same rows.
    assert sentence_hashes(["a", "h\u00e9"]).dtype == np.uint64
    assert sentence_hashes([]).shape == (0,)
    assert int(sentence_hashes(["abc"])[0]) == int.from_bytes(bytes.fromhex("d8bb14d833d59559"), "little")
