"""Read sentences and augment them: builds a sentence table, the training text of other stages."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

from sentcompress.augmentations.back_translation import back_translation_spec
from sentcompress.augmentations.base import AugmenterSpec
from sentcompress.augmentations.sharded_table import FREQUENCIES as PLANNED_FREQUENCIES
from sentcompress.augmentations.sharded_table import make_part, plan_of
from sentcompress.augmentations.table import (
    AugmentationPlan,
    Augmented,
    Pieces,
    append_pieces,
    facts_of,
    file_of,
    make_pieces,
)
from sentcompress.augmentations.wordnet import wordnet_spec
from sentcompress.commands.augment import Params
from sentcompress.corpora.inputs import Input, open_inputs
from sentcompress.corpora.mixing import as_facts, mixed, weights_of
from sentcompress.corpora.originals import Limits, ReadCounts, write_originals
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords, told_other_splits
from sentcompress.errors import InputError, SentcompressError
from sentcompress.passages.query_copies import QueryCopies, count_frequencies
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import SCAFFOLD, Artifact, Build, Request, WorkDirectory
from sentcompress.store.shard import find_shard
from sentcompress.store.shards import sharded

DEFAULT_NAME = "main"
# As in HPD, each sentence appears three times: original, with synonyms, back-translated.
DEFAULT_COPIES = 1
# If half of the words are in longer texts, these are documents, and no copies are made by default: they would triple
# the tokens to embed, and a synonym for some of its words leaves a long text about the same.
DOCUMENT_WORDS = 50
# About what a model of 256 tokens reads of English text.
WORDS_READ = 180
# Records of each input from which that is measured.
_MEASURED = 2000
_READ = f"{SCAFFOLD}/originals.json"
_FREQUENCIES = f"{SCAFFOLD}/words.npy"
# What makes copies of the sentences, each with the number of copies, in the order of the table.
Augmentations = tuple[tuple[AugmenterSpec, int], ...]


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write the sentence table, with triplets if the input has labels, as an artifact of kind `sentences`.

    With `shard`, augments only a part of the sentences, for `merge`; the first shard that runs reads them all.

    Raises:
        InputError: if an input cannot be read, or a requested augmentation is not available.
    """
    params.check()
    if params.translator and params.back_translate == 0:
        reporter.warn("`translator` is ignored, because `back_translate` is 0")
    options = ReadOptions(
        *(params.format, params.column, params.split, params.domain),
        joined=not params.separate_columns,
        text_as=params.text_as,
    )
    # Before anything is read: a missing translator would be told after hours otherwise.
    augmentations, skipped = _augmentations(params)
    with open_inputs(params.inputs, options, params.config, params.revision, work, reporter) as inputs:
        augmentations, skipped = _for_length(params, inputs, augmentations, skipped, reporter)
        for spec, _ in augmentations:
            reporter.note(f"{spec.source}: {spec.summary}")
        for message in skipped:
            reporter.warn(message)
        request = _request(params, inputs, augmentations)
        if shard := find_shard(params.shard):

            def plan(build: Build) -> dict[str, Any]:
                limits = Limits(params.min_length, params.max_length, params.limit)
                read = _originals(params, inputs, limits, build, reporter)
                _count_words(augmentations, read, build, PLANNED_FREQUENCIES)
                return plan_of(read, limits, _copies(augmentations))

            with sharded(work, request, shard, plan, force=params.force, reporter=reporter) as part:
                if isinstance(part, Artifact):
                    return part
                read = ReadCounts(**part.plan.facts["read"])
                specs = [
                    _with_frequencies(spec, read, part.plan.path / PLANNED_FREQUENCIES) for spec, _ in augmentations
                ]
                return make_part(part, specs, params.workers or _cores(), reporter)
        with work.build(request, force=params.force, reporter=reporter) as build:
            if build.fresh:
                return build.fresh
            return _build(params, inputs, augmentations, build, reporter)


def _augmentations(params: Params) -> tuple[Augmentations, list[str]]:
    """The augmentations and their number of copies, in table order, and a warning for each unavailable default."""
    augmentations: list[tuple[AugmenterSpec, int]] = []
    skipped: list[str] = []
    for option, asked in (("wordnet", params.wordnet), ("back_translate", params.back_translate)):
        copies = DEFAULT_COPIES if asked is None else asked
        if copies == 0:
            continue
        try:
            augmentations.append((_augmenter(option, copies, params), copies))
        except InputError as error:
            if asked is not None or (option == "back_translate" and params.translator):
                raise error.with_alternative(f"disable it: `{option}` 0") from None
            skipped.append(f"`{option}` is skipped: {error.message} ({error.hint})")
    if params.queries_per_text:
        queries = QueryCopies(params.queries_per_text, params.seed)
        augmentations.append((queries, queries.copies))
    return tuple(augmentations), skipped


def _for_length(
    params: Params,
    inputs: list[Input],
    augmentations: Augmentations,
    skipped: list[str],
    reporter: Reporter,
) -> tuple[Augmentations, list[str]]:
    """The augmentations and warnings that remain: of documents, only the copies that were asked for."""
    asked = {"wordnet": params.wordnet, "back_translate": params.back_translate}
    if params.translator and params.back_translate is None:
        asked["back_translate"] = DEFAULT_COPIES  # who names a translator asks for it
    left = [f"`{option}` 1" for option, copies in asked.items() if copies is None]
    if not left:
        return augmentations, skipped
    weights = weights_of(params.share, params.inputs)
    words = usual_length([given for given, weight in zip(inputs, weights, strict=True) if weight])
    if words <= DOCUMENT_WORDS:
        return augmentations, skipped
    reporter.note(
        f"half of the words are in texts of {words} words or more, so the texts count as documents, of which no copies "
        f"are made by default; {' and '.join(left)} {'makes' if len(left) == 1 else 'make'} copies"
    )
    if words > WORDS_READ:
        reporter.note("most models read about 180 words of a text; split-documents cuts documents into passages")
    return _augmentations(replace(params, wordnet=asked["wordnet"] or 0, back_translate=asked["back_translate"] or 0))


def usual_length(inputs: list[Input]) -> int:
    """The words of the texts that hold half of all words, measured at the beginning of the inputs; 0 without texts.

    Unlike the mean, it does not depend on how many titles and queries come with the documents.

    Raises:
        InputError: if an input cannot be read. Faults of single lines are left to the reading itself.
    """
    lengths = sorted(
        len(text.split())
        for given in inputs
        for record in islice(given.records(BadRecords(skip=True)), _MEASURED)
        for text in record.texts
    )
    total = sum(lengths)
    return next((words for words, before in zip(lengths, accumulate(lengths), strict=True) if 2 * before >= total), 0)


def _augmenter(option: str, copies: int, params: Params) -> AugmenterSpec:
    if option == "wordnet":
        return wordnet_spec(params.aug_p, params.seed)
    return back_translation_spec(params.translator, copies)


def _request(params: Params, inputs: list[Input], augmentations: Augmentations) -> Request:
    resolved: dict[str, Any] = {
        # Listed again because their order determines the order of the rows.
        "inputs": [given.reference for given in inputs],
        # The augmentations in use, not those requested: installing a translator later makes the table stale.
        "augmentations": {spec.source: {"copies": copies, **spec.describe()} for spec, copies in augmentations},
    }
    digests = {given.reference: given.digest for given in inputs}
    return Request.of(params, params.name or DEFAULT_NAME, digests, resolved)


def _build(
    params: Params,
    inputs: list[Input],
    augmentations: Augmentations,
    build: Build,
    reporter: Reporter,
) -> Artifact:
    started = time.monotonic()
    limits = Limits(params.min_length, params.max_length, params.limit)
    tally = _originals(params, inputs, limits, build, reporter)
    plan = AugmentationPlan(tally.originals, tally.files, _copies(augmentations))
    augmented = Augmented(tally.originals)
    notes: dict[str, str] = {}
    if augmentations:
        pieces = Pieces(build.path, build)
        _count_words(augmentations, tally, build, _FREQUENCIES)
        specs = [_with_frequencies(spec, tally, build.path / _FREQUENCIES) for spec, _ in augmentations]
        notes = make_pieces(plan, specs, pieces, params.workers or _cores(), reporter)
        augmented = append_pieces(plan, build, lambda piece: build.path / file_of(piece), limits, reporter)
    rate = round(augmented.rows / max(time.monotonic() - started, 1e-6), 1)
    return build.finish({**facts_of(tally, augmented, notes), "sentences_per_second": rate})


def _copies(augmentations: Augmentations) -> tuple[tuple[str, int], ...]:
    return tuple((spec.source, copies) for spec, copies in augmentations)


def _count_words(augmentations: Augmentations, read: ReadCounts, build: Build, name: str) -> None:
    """Count in how many originals each word occurs, if queries are made, which ask for it; in the file `name`."""
    if any(isinstance(spec, QueryCopies) for spec, _ in augmentations) and not build.has(name):
        table = SentenceTable(build.path)
        with build.write(name) as path:
            count_frequencies(chain.from_iterable(map(table.texts, range(read.files))), path)


def _with_frequencies(spec: AugmenterSpec, read: ReadCounts, frequencies: Path) -> AugmenterSpec:
    """The augmentation; one that makes queries gets the file that `_count_words` wrote."""
    if not isinstance(spec, QueryCopies):
        return spec
    return replace(spec, frequencies=frequencies, documents=read.originals)


def _originals(params: Params, inputs: list[Input], limits: Limits, build: Build, reporter: Reporter) -> ReadCounts:
    """Write the original sentences, unless an interrupted run finished them; returns their counts."""
    if build.has(_READ):
        return ReadCounts(**json.loads((build.path / _READ).read_text(encoding="utf-8")))
    bad = BadRecords(params.skip_bad)
    try:
        samples = (
            mixed(inputs, params.words, weights_of(params.share, params.inputs), params.seed, reporter)
            if params.words
            else []
        )
        tally = write_originals(samples or inputs, build.write, limits, bad, reporter)
        tally.mix = dict(as_facts(samples))
        if not tally.originals:
            why = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in tally.skipped.items())
            raise InputError("there are no sentences in the input", f"dropped: {why}" if why else None)
    except SentcompressError:
        # A partial build is useless: with a fixed input, the request differs.
        shutil.rmtree(build.path)
        raise
    bad.warn(reporter)
    if bad.other_splits:
        reporter.note(f"{told_other_splits(bad.other_splits, params.split)} (`split` chooses)")
    if params.limit is not None and tally.originals < params.limit:
        whole = not (params.words or {"too_short", "too_long"} & set(tally.skipped))
        given = "the input has" if whole else "the other options leave"
        reporter.note(f"{given} {tally.originals:,} distinct sentences, fewer than `limit` {params.limit:,}")
    with build.write(_READ) as path:
        path.write_text(json.dumps(asdict(tally)), encoding="utf-8")
    return tally


def _cores() -> int:
    """Number of cores available to this process, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
