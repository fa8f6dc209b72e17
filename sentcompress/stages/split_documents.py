"""Cut documents into passages, make queries from them, and hold some documents out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sentcompress.commands.split_documents import Params
from sentcompress.corpora.delimited import listed, told_unread
from sentcompress.corpora.document import Document
from sentcompress.corpora.documents_artifact import find_documents
from sentcompress.corpora.inputs import Input, check_columns, open_inputs
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords, told_other_splits
from sentcompress.errors import InputError, SentcompressError
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.holdout import Choice, choose
from sentcompress.passages.querylog import SplitLog, read_log, split_log
from sentcompress.passages.scan import LEAST_ENGLISH, ScanCounts, read_units, scan
from sentcompress.passages.writing import WritePlan, WrittenCounts, write_documents
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.store import SCAFFOLD, Artifact, Build, Request, WorkDirectory, file_inputs

COMMAND = Params.command
DEFAULT_NAME = "main"
# Fewer passages leave nothing to measure; fewer documents are held out by section.
FEWEST_PASSAGES = FEWEST_DOCUMENTS = 100
# Documents are also held out by section if one of them has a larger share of the passages: otherwise, either training
# or measuring would lose all of it.
LARGEST_DOCUMENT = 0.1
# If more documents than this share are in another language, a warning says so.
MOST_FOREIGN = 0.1
_PASSAGES, _FREQUENCIES, _SCANNED = (f"{SCAFFOLD}/{name}" for name in ("passages.jsonl", "words.npy", "scanned.json"))


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write training texts and a held-out collection with queries as an artifact of kind `documents`.

    Raises:
        InputError: if an input cannot be read, or there are fewer than FEWEST_PASSAGES passages.
    """
    params.check()
    _refuse_results(params, work)
    options = ReadOptions(
        *(params.format, params.column, params.split),
        text_as=params.text_as,
        id_column=params.id_column,
        documents=True,
    )
    # First: a misspelt column is not another result of the same name.
    check_columns(params.inputs, options, work, skip_bad=params.skip_bad)
    with (
        open_inputs(params.inputs, options, params.config, params.revision, work, reporter) as inputs,
        work.build(_request(params, inputs), force=params.force, reporter=reporter) as build,
    ):
        return build.fresh or _Splitting(params, inputs, build, reporter).run()


def _refuse_results(params: Params, work: WorkDirectory) -> None:
    """Raise InputError for `documents/NAME`: its queries would count as documents, and more be made from them."""
    for name in params.inputs:
        if find_documents(work, name):
            there = (f"write ./{name} for the file or folder of that path",) if Path(name).exists() else ()
            raise InputError(
                f"{name} is a result of {COMMAND}: its documents are cut and have queries",
                ("name the documents that it was made from", *there),
            )


def _request(params: Params, inputs: list[Input]) -> Request:
    queries = file_inputs(params.queries)
    digests = {given.reference: given.digest for given in inputs} | queries
    # Listed again because their order determines the order of the texts.
    resolved = {"inputs": [given.reference for given in inputs], "queries": [*queries]}
    return Request.of(params, params.name or DEFAULT_NAME, digests, resolved)


@dataclass
class _Splitting:
    """One build of the artifact."""

    params: Params
    inputs: list[Input]
    build: Build
    reporter: Reporter

    def run(self) -> Artifact:
        bad = BadRecords(self.params.skip_bad)
        try:
            # The log first: it is read faster than the documents, and can be wrong too.
            log = self._log(bad) if self.params.queries else None
            scanned = self._scan(bad)
            choice, why_section = self._choose(scanned)
            self._tell_columns(scanned)
            self._tell_language(scanned)
            counts = self._write(choice, bool(why_section), scanned, log)
            self._require_queries(counts)
        except SentcompressError:
            # A partial build is useless: with a fixed input, the request differs.
            shutil.rmtree(self.build.path)
            raise
        if scanned.empty:
            self.reporter.note(f"left out {counted(scanned.empty, 'document')} without text")
        self._tell(counts, why_section)
        return self.build.finish(self._facts(scanned, counts, choice, log, bool(why_section)))

    def _log(self, bad: BadRecords) -> SplitLog:
        return split_log(lambda: read_log(self.params.queries, bad), self.params.seed)

    def _scan(self, bad: BadRecords) -> ScanCounts:
        """Read the documents, unless an interrupted run finished that."""
        if self.build.has(_SCANNED):
            return ScanCounts(**json.loads((self.build.path / _SCANNED).read_text(encoding="utf-8")))
        frequencies = DocumentFrequencies()
        with (
            self.reporter.track("cutting into passages", unit="documents") as task,
            self.build.write(_PASSAGES) as path,
        ):
            counts = scan(self._documents(bad), self.params.passage_words, path, frequencies, task)
        with self.build.write(_FREQUENCIES) as path:
            frequencies.save(path)
        counts.skipped = {"bad_lines": bad.count} if bad.count else {}
        counts.unasked = {name: list(columns) for name, columns in bad.unasked.items()}
        counts.unread = bad.unread
        bad.warn(self.reporter)
        if bad.other_splits:
            self.reporter.note(told_other_splits(bad.other_splits, self.params.split))
        with self.build.write(_SCANNED) as path:
            path.write_text(json.dumps(asdict(counts)), encoding="utf-8")
        return counts

    def _documents(self, bad: BadRecords) -> Iterator[Document]:
        for given in self.inputs:
            yield from given.documents(bad)

    def _choose(self, scanned: ScanCounts) -> tuple[Choice, str]:
        """What is held out, and why it is sections instead of documents; empty if it is documents."""
        params, why_section = self.params, ""
        for by_section in (False, True):
            units = read_units(self.build.path / _PASSAGES, by_section)
            choice = choose(units, params.held_out, params.corpus_passages, params.seed)
            if choice.distinct_passages < FEWEST_PASSAGES:
                without = "without text" + (" that can be read" if scanned.skipped else "")
                empty = f" ({scanned.empty:,} more {without})" if scanned.empty else ""
                raise InputError(
                    f"found {counted(scanned.documents, 'document')}{empty} with "
                    f"{counted(choice.distinct_passages, 'distinct passage')}; at least {FEWEST_PASSAGES} are needed, "
                    "because some are held out for measuring",
                    "add documents; if a text file holds one per line or per paragraph, `text_as` says so",
                )
            if by_section:
                break
            if choice.units < FEWEST_DOCUMENTS:
                why_section = f"fewer than {FEWEST_DOCUMENTS} documents"
            elif choice.largest > LARGEST_DOCUMENT:
                why_section = f"one document has {choice.largest:.0%} of the passages"
            else:
                break
        return choice, why_section

    def _tell_columns(self, scanned: ScanCounts) -> None:
        if scanned.unasked:
            first, *others = scanned.unasked
            files = f"{first} and {counted(len(others), 'other table')}" if others else first
            self.reporter.note(
                f"{files}: each text in the columns {listed(scanned.unasked_columns)} is a document of its own; name "
                "the columns to take with `column`"
            )
        if scanned.unread:
            self.reporter.note(told_unread(scanned.unread))

    def _tell_language(self, scanned: ScanCounts) -> None:
        if scanned.english < LEAST_ENGLISH:
            self.reporter.warn(
                f"{scanned.english:.0%} of the words are English function words (English prose: 35 to 50%); if the "
                "documents are in another language, use a teacher that knows it"
            )
        elif scanned.foreign > MOST_FOREIGN * scanned.documents:
            self.reporter.warn(
                f"{scanned.foreign:,} of {counted(scanned.documents, 'document')} have few English function words; if "
                "they are in another language, use a teacher that knows it"
            )

    def _write(self, choice: Choice, by_section: bool, scanned: ScanCounts, log: SplitLog | None) -> WrittenCounts:
        units = partial(read_units, self.build.path / _PASSAGES, by_section)
        frequencies = DocumentFrequencies.load(self.build.path / _FREQUENCIES, scanned.documents)
        plan = WritePlan(units, choice, frequencies, self.params.per_passage, self.params.seed, log)
        with self.reporter.track("writing", total=len(choice.held), unit="documents") as task:
            return write_documents(plan, self.build.write, task)

    def _require_queries(self, counts: WrittenCounts) -> None:
        """Raise InputError if a part has no queries: nothing could be measured with it."""
        if not all(counts.held_out_queries.values()):
            made = listed(f"{count} for {part}" for part, count in counts.held_out_queries.items())
            raise InputError(
                f"too few queries can be made from the held-out documents ({made}): they are made from sentences of "
                "several words, with blanks between the words",
                "give documents with such sentences; or give your users' queries with `queries`",
            )

    def _tell(self, counts: WrittenCounts, why_section: str) -> None:
        if why_section:
            self.reporter.note(
                f"{why_section}: held out by section instead of by document, so training texts come from the same "
                "documents as the held-out ones"
            )
        if counts.repeated_documents:
            self.reporter.note(
                f"dropped {counted(counts.repeated_documents, 'document')} with the same words as an earlier one"
            )
        if counts.repeated_ids:
            self.reporter.warn(
                f"{counted(counts.repeated_ids, 'document')} with the id of another one; a number is added to tell "
                "their passages apart"
            )
        if counts.corpus > (asked := self.params.corpus_passages):
            self.reporter.note(
                f"the held-out documents have more than {asked:,} passages; all {counts.corpus:,} are kept"
            )

    def _facts(
        self, scanned: ScanCounts, counts: WrittenCounts, choice: Choice, log: SplitLog | None, by_section: bool
    ) -> dict[str, Any]:
        skipped = {
            **scanned.skipped,
            "empty_documents": scanned.empty,
            "repeated_documents": counts.repeated_documents,
            "passages_equal_to_held_out_texts": counts.leaks_dropped,
        }
        return {
            "documents": scanned.documents,
            "passages": counts.passages,
            "titles": counts.titles,
            "queries": counts.queries,
            "held_out_documents": counts.held_out_documents,
            "held_out_queries": sum(counts.held_out_queries.values()),
            "parts": counts.held_out_queries,
            "held_out_by": "section" if by_section else "document",
            "sections": choice.units if by_section else 0,
            "corpus": counts.corpus,
            "words": scanned.words,
            "english": round(scanned.english, 4),
            "repeated_ids": counts.repeated_ids,
            **({"columns": scanned.unasked_columns} if scanned.unasked else {}),
            "logged_queries": log.count if log else 0,
            "held_out_logged_queries": log.held if log else 0,
            "skipped": {reason: count for reason, count in skipped.items() if count},
        }
