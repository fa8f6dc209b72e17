"""Mine hard negatives: texts that a model ranks close to a query although they are not relevant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sentcompress.commands.mine_negatives import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords
from sentcompress.encoding.embedders import Embedder, EmbedderSource, Vectors, find_embedder
from sentcompress.encoding.vector_shards import writing_vectors
from sentcompress.errors import InputError, SentcompressError
from sentcompress.evaluation.index import Found, build_index, exact_search
from sentcompress.evaluation.index_plan import IndexSettings as IndexSettings
from sentcompress.evaluation.index_plan import longest_vector, plan_index
from sentcompress.evaluation.similarity import searchable
from sentcompress.evaluation.vector_rows import VectorRows, in_file
from sentcompress.extras import check_installed
from sentcompress.mining.gathering import Gathered, Gatherer, gather_texts
from sentcompress.mining.miner import Miner, MiningCounts, Rules
from sentcompress.mining.origins import Origin, file_digests, of_collection, of_pairs, of_triplets
from sentcompress.mining.table import Mined, write_mined
from sentcompress.models.catalog import typed_name
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import SCAFFOLD, Artifact, Build, Request, WorkDirectory

COMMAND = Params.command
DEFAULT_NAME = "mined"
# Temporary files, removed when mining is finished.
CORPUS, VECTORS = f"{SCAFFOLD}/corpus", f"{SCAFFOLD}/vectors.npy"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write queries, positives and mined negatives as an artifact of kind `sentences`, with triplets.

    After an interruption, the corpus is not encoded again.

    Raises:
        MissingArtifactError: without `pairs` and `collection`, if no sentence table has triplets.
        InputError: if files cannot be read, there are no pairs, or the corpus is too small.
    """
    params.check()
    check_installed("faiss")
    if params.pairs is not None:
        origin = of_pairs(params.pairs, params.columns)
    elif params.collection is not None:
        origin = of_collection(params.collection, params.split)
    else:
        origin = of_triplets(work, params.sentences, COMMAND)
    source = find_embedder(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    with work.build(_request(params, origin, source), force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        mining = _Mining(params, origin, source, build, reporter)
        try:
            return mining.run()
        except SentcompressError:
            build.remove(SCAFFOLD)  # it cannot be resumed: with a fixed model or fixed texts, the request differs
            raise


def _request(params: Params, origin: Origin, source: EmbedderSource) -> Request:
    inputs = {**origin.inputs, **source.inputs, **(file_digests(params.corpus) if params.corpus else {})}
    model = typed_name(params.model, source)
    return Request.of(
        params,
        params.name or DEFAULT_NAME,
        inputs,
        {"model": source.reference},
        model=model,
    )


def _rules(params: Params) -> Rules:
    return params.part(Rules, count=params.negatives)


@dataclass
class _Mining:
    """One build of the mined table."""

    params: Params
    origin: Origin
    source: EmbedderSource
    build: Build
    reporter: Reporter

    def run(self) -> Artifact:
        if self.params.similarity == "dot" and self.params.max_score is not None:
            self.reporter.warn(
                f"inner products are unbounded, so a limit of {self.params.max_score:g} may not be meaningful; "
                "a maximum of 0 sets no limit"
            )
        gathered = self._gather()
        count = self.params.negatives
        if gathered.corpus <= count:
            raise InputError(
                f"the corpus has {gathered.corpus} texts: too few for {count} negatives and a positive",
                "lower `negatives`, or add texts with `corpus`",
            )
        embedder = self.source.open(device=self.params.device, dtype=self.params.dtype, reporter=self.reporter)
        self._embed(embedder, gathered.corpus)
        corpus = in_file(self.build.path / VECTORS)
        miner = Miner(
            lambda texts: self._comparable(embedder.encode(texts)),
            corpus,
            self._search(corpus),
            _rules(self.params),
            self.params.seed,
        )
        with self.reporter.track("mining", total=len(gathered.queries), unit="queries") as task:
            mined = Mined(*miner.mine(gathered.queries, gathered.pairs, gathered.own, task))
        if not len(mined.pairs):
            raise InputError(
                f"no pair has {count} candidate negatives",
                "raise `max_score`, or add texts with `corpus`",
            )
        rows = write_mined(mined, gathered, SentenceTable(self.build.path / CORPUS), self.origin.name, self.build.write)
        return self.build.finish(self._facts(gathered, miner.counts, rows))

    def _gather(self) -> Gathered:
        """Read queries and pairs into memory, and the corpus into a temporary sentence table."""
        self.build.remove(CORPUS)  # from an interrupted run; reading again is faster than checking
        if self.origin.warning:
            self.reporter.warn(self.origin.warning)
        bad = BadRecords(self.params.skip_bad)
        gatherer = Gatherer(lambda name: self.build.write(f"{CORPUS}/{name}"))
        with self.reporter.track("reading"):
            self.origin.gather(gatherer, bad, self.reporter)
            if self.params.corpus is not None:
                gather_texts(self.params.corpus, gatherer, bad)
            gathered = gatherer.finish()
        if bad.count:
            self.reporter.warn(f"{bad.count} bad lines were skipped; the first: {bad.first}")
        for reason, pairs in gathered.left_out.items():
            self.reporter.warn(f"dropped {pairs} pairs: {reason.replace('_', ' ')}")
        return gathered

    def _embed(self, embedder: Embedder, texts: int) -> None:
        if self.build.has(VECTORS):
            return  # from an interrupted run
        table = SentenceTable(self.build.path / CORPUS)
        with (
            self.reporter.track(f"encoding the corpus with {self.source.label}", total=texts) as task,
            self.build.write(VECTORS) as path,
            writing_vectors(path, texts, embedder.dimension, "float32") as append,
        ):
            for part in embedder.stream(table.stream(), task):
                append(self._comparable(part))

    def _comparable(self, vectors: Vectors) -> Vectors:
        """Vectors whose inner product is the chosen similarity."""
        longest = longest_vector([self.params.index], self.params.rescore)
        return searchable(vectors, self.params.similarity, self.source.label, longest)[0]

    def _search(self, corpus: VectorRows) -> Callable[[Vectors, int], Found]:
        if self.params.index == "flat":
            return partial(exact_search, corpus)
        rules = _rules(self.params)
        plan = plan_index(
            self.params.index, self.params.part(IndexSettings), len(corpus), corpus.dimension, rules.skip + rules.depth
        )
        for warning in plan.warnings:
            self.reporter.warn(warning)
        with self.reporter.track(f"building {self.params.index}", total=len(corpus), unit="texts") as task:
            return build_index(plan, corpus, task).search

    def _facts(self, gathered: Gathered, tally: MiningCounts, rows: int) -> dict[str, Any]:
        count = self.params.negatives
        if tally.too_few:
            self.reporter.warn(f"dropped {tally.too_few} pairs with too few candidate negatives")
        if tally.padded:
            self.reporter.warn(
                f"{tally.padded_pairs} of {tally.pairs} pairs have too few candidate negatives, and got "
                f"{tally.padded} random texts of the corpus"
            )
        return {
            "rows": rows,
            "triplets": tally.pairs,
            "negatives": count,
            "queries": len(gathered.queries),
            "corpus": gathered.corpus,
            "model": self.source.label,
            "mined_from": self.origin.name,
            "mean_positive_score": tally.positive_score / tally.pairs,
            "mean_negative_score": tally.negative_score / (tally.pairs * count),
            "positives_among_candidates": tally.found / tally.pairs,
            "candidates": tally.considered,
            "share_dropped": tally.dropped / tally.considered if tally.considered else 0.0,
            "padded_pairs": tally.padded_pairs,
            "padded_negatives": tally.padded,
            "left_out": {**gathered.left_out, **({"too_few_negatives": tally.too_few} if tally.too_few else {})},
        }
