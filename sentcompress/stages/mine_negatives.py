"""Mine hard negatives: texts that a model ranks close to a query although they are not relevant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sentcompress.commands.mine_negatives import DEFAULT_NAME, Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords
from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import cache_windows, find_embedder
from sentcompress.encoding.npy_files import writing_vectors
from sentcompress.encoding.sides import Sides, in_roles, recorded_prompts
from sentcompress.errors import BusyError, InputError, SentcompressError
from sentcompress.evaluation.index import Found, build_index, exact_search
from sentcompress.evaluation.index_plan import IndexPlan, longest_vector, plan_index
from sentcompress.evaluation.searchable import searchable
from sentcompress.evaluation.vector_rows import VectorRows, in_file
from sentcompress.extras import check_installed
from sentcompress.mining import sharded_mining
from sentcompress.mining.gathering import Gathered, Gatherer, gather_texts
from sentcompress.mining.miner import Miner, Rules, chunk_sizes
from sentcompress.mining.origins import Origin, file_digests, of_collection, of_pairs, of_triplets
from sentcompress.mining.sharded_mining import facts_of, too_few
from sentcompress.mining.table import Mined, write_mined
from sentcompress.models.catalog import typed_name
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.store import SCAFFOLD, Artifact, Build, Request, WorkDirectory
from sentcompress.store.shard import Shard, find_shard
from sentcompress.store.shards import Part, sharded

COMMAND = Params.command
# Temporary files, removed when mining is finished.
CORPUS, VECTORS, DTYPE = f"{SCAFFOLD}/corpus", f"{SCAFFOLD}/vectors.npy", f"{SCAFFOLD}/dtype"
# The vectors of the corpus, or of a part of it, in what shards share.
ALL_VECTORS = "vectors.npy"
AUTO = "auto"
# How often a shard looks whether another has encoded its part of the corpus.
PAUSE_SECONDS = 0.5


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write queries, positives and mined negatives as an artifact of kind `sentences`, with triplets.

    After an interruption, the corpus is not encoded again, and the number format stays the same. With `shard`, mines
    for only a part of the queries, for `merge`; shards that run at the same time encode the corpus together.

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
    sides = in_roles(source, source)
    request = _request(params, origin, sides)
    mining = _Mining(params, origin, sides, reporter)
    if shard := find_shard(params.shard):
        with sharded(work, request, shard, mining.plan, force=params.force, reporter=reporter) as part:
            return part if isinstance(part, Artifact) else mining.shard(part)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        try:
            return mining.whole(build)
        except SentcompressError:
            build.remove(SCAFFOLD)  # it cannot be resumed: with a fixed model or fixed texts, the request differs
            raise


def _request(params: Params, origin: Origin, sides: Sides) -> Request:
    inputs = {**origin.inputs, **sides.inputs, **(file_digests(params.corpus) if params.corpus else {})}
    model = typed_name(params.model, sides.queries)
    return Request.of(
        params,
        params.name or DEFAULT_NAME,
        inputs,
        {"model": sides.queries.reference, **recorded_prompts({"model": sides})},
        model=model,
    )


def _rules(params: Params) -> Rules:
    return params.part(Rules, count=params.negatives)


@dataclass
class _Mining:
    """Mining by one request."""

    params: Params
    origin: Origin
    sides: Sides
    reporter: Reporter
    _told: bool = field(default=False, init=False)

    def whole(self, build: Build) -> Artifact:
        """Mine all pairs."""
        self._warn()
        gathered = self._gather(build, CORPUS)
        if not build.has(DTYPE):
            with build.write(DTYPE) as path:
                path.write_text(self._dtype(), encoding="utf-8")
        documents, queries = self._embedders((build.path / DTYPE).read_text(encoding="utf-8"))
        plan = self._plan_index(gathered.corpus, documents.dimension)
        table = SentenceTable(build.path / CORPUS)
        if not build.has(VECTORS):  # otherwise from an interrupted run
            self._embed(documents, table.stream(), gathered.corpus, build, VECTORS)
        miner = self._miner(queries, in_file(build.path / VECTORS), plan)
        mined = self._mine(miner, gathered, None)
        if not len(mined.pairs):
            raise too_few(self.params.negatives)
        rows = write_mined(mined, gathered, table, self.origin.name, build.write)
        return build.finish(facts_of(gathered, miner.counts, rows, self._described, self.reporter))

    def plan(self, build: Build) -> dict[str, Any]:
        """Read the queries and the corpus, for all shards."""
        self._warn()
        gathered = self._gather(build, sharded_mining.CORPUS)
        prompt = self.sides.documents.before_texts
        every = SentenceTable(build.path / sharded_mining.CORPUS).stream()
        chunks = ([prompt + text for text in texts] for texts in every)
        facts = {
            "windows": [len(window) for window in cache_windows(chunks)],
            "dtype": self._dtype(),
            "described": self._described,
        }
        return {**facts, **sharded_mining.save_gathered(gathered, build.write)}

    def shard(self, part: Part) -> Artifact:
        """Mine the pairs of some of the queries."""
        documents, queries = self._embedders(part.plan.facts["dtype"])
        plan = self._plan_index(part.plan.facts["corpus"], documents.dimension)
        miner = self._miner(queries, in_file(self._vectors(part, documents)), plan)
        gathered = sharded_mining.load_gathered(part.plan)
        sizes = chunk_sizes(len(gathered.queries))
        chunks = part.shard.of(len(sizes))
        mined = self._mine(miner, gathered, chunks)
        sharded_mining.save_mined(mined, part.build.write)
        return part.finish({"queries": sum(sizes[chunks.start : chunks.stop]), "counts": asdict(miner.counts)})

    def _vectors(self, part: Part, embedder: Embedder) -> Path:
        """The file of the corpus's vectors, whose parts all running shards make together.

        Each starts at another part and leaves out those that another process is making.
        """
        count, first = part.shard.count, part.shard.number - 1
        order = [Shard((first + step) % count + 1, count) for step in range(count)]
        while True:
            made = {one.number: self._part_of_vectors(part, one, embedder) for one in order}
            busy = next((one for one in made.values() if isinstance(one, BusyError)), None)
            if busy is None:
                break
            self._wait(busy)
        while True:
            try:
                with part.shared("vectors") as build:
                    if not build.fresh:
                        folders = [one.path for _, one in sorted(made.items()) if isinstance(one, Artifact)]
                        self._join(build, folders, part.plan.facts["corpus"], embedder)
                        return build.finish({}).path / ALL_VECTORS
                    return build.fresh.path / ALL_VECTORS
            except BusyError as error:
                self._wait(error)

    def _wait(self, busy: BusyError) -> None:
        """Wait a moment for another shard, and say once for which: where locks are local, it may have ended."""
        if not self._told:
            who = "; ".join([busy.message, *(one for one in busy.alternatives if one.startswith("wait for it"))])
            self.reporter.note(f"waiting for parts of the corpus that other shards encode: {who}")
            self._told = True
        time.sleep(PAUSE_SECONDS)

    def _part_of_vectors(self, part: Part, one: Shard, embedder: Embedder) -> Artifact | BusyError:
        """One part of the corpus's vectors; the error that says so if another process is making it."""
        sizes = part.plan.facts["windows"]
        mine = one.of(len(sizes))
        start, rows = sum(sizes[: mine.start]), sum(sizes[mine.start : mine.stop])
        try:
            with part.shared(f"vectors-{one.name}") as build:
                if build.fresh:
                    return build.fresh
                table = SentenceTable(part.plan.path / sharded_mining.CORPUS)
                self._embed(embedder, table.stream(start, rows), rows, build, ALL_VECTORS)
                return build.finish({})
        except BusyError as busy:
            return busy

    def _join(self, build: Build, folders: Sequence[Path], rows: int, embedder: Embedder) -> None:
        with (
            build.write(ALL_VECTORS) as path,
            writing_vectors(path, rows, embedder.dimension, "float32") as append,
        ):
            for folder in folders:
                for _, piece in in_file(folder / ALL_VECTORS).pieces():
                    append(piece)

    def _warn(self) -> None:
        if self.params.similarity == "dot" and self.params.max_score is not None:
            self.reporter.warn(
                f"inner products are unbounded, so a limit of {self.params.max_score:g} may not be meaningful; "
                "a maximum of 0 sets no limit"
            )

    @property
    def _described(self) -> dict[str, Any]:
        return {"negatives": self.params.negatives, "model": self.sides.label, "mined_from": self.origin.name}

    def _dtype(self) -> str:
        """The number format; `auto` is what this machine chooses."""
        dtype = self.params.dtype
        if dtype != AUTO:
            return dtype
        return str(self.sides.documents.open_bare(device=self.params.device, dtype=AUTO).described()["dtype"])

    def _embedders(self, dtype: str) -> tuple[Embedder, Embedder]:
        """The embedders of the corpus and of queries."""
        return self.sides.open(device=self.params.device, dtype=dtype, reporter=self.reporter)

    def _miner(self, queries: Embedder, corpus: VectorRows, plan: IndexPlan | None) -> Miner:
        return Miner(
            lambda texts: self._comparable(queries.encode(texts)),
            corpus,
            self._search(corpus, plan),
            _rules(self.params),
            self.params.seed,
        )

    def _mine(self, miner: Miner, gathered: Gathered, chunks: range | None) -> Mined:
        with self.reporter.track("mining", total=len(gathered.queries), unit="queries") as task:
            return Mined(*miner.mine(gathered.queries, gathered.pairs, gathered.own, task, chunks))

    def _gather(self, build: Build, folder: str) -> Gathered:
        """Read queries and pairs into memory, and the corpus into a sentence table in a folder of the build."""
        build.remove(folder)  # from an interrupted run; reading again is faster than checking
        if self.origin.warning:
            self.reporter.warn(self.origin.warning)
        bad = BadRecords(self.params.skip_bad)
        gatherer = Gatherer(lambda name: build.write(f"{folder}/{name}"))
        with self.reporter.track("reading"):
            self.origin.gather(gatherer, bad, self.reporter)
            if self.params.corpus is not None:
                gather_texts(self.params.corpus, gatherer, bad)
            gathered = gatherer.finish()
        bad.warn(self.reporter)
        for reason, pairs in gathered.left_out.items():
            self.reporter.warn(f"dropped {counted(pairs, 'pair')}: {reason.replace('_', ' ')}")
        if gathered.corpus <= (count := self.params.negatives):
            raise InputError(
                f"the corpus has {counted(gathered.corpus, 'text')}: too few for {counted(count, 'negative')} and a "
                "positive",
                "lower `negatives`, or add texts with `corpus`",
            )
        return gathered

    def _embed(self, embedder: Embedder, chunks: Iterable[Sequence[str]], texts: int, build: Build, name: str) -> None:
        """Write the vectors of texts, in chunks, to a file."""
        with (
            self.reporter.track(f"encoding the corpus with {self.sides.label}", total=texts) as task,
            build.write(name) as path,
            writing_vectors(path, texts, embedder.dimension, "float32") as append,
        ):
            for part in embedder.stream(chunks, task):
                append(self._comparable(part))

    def _comparable(self, vectors: Vectors) -> Vectors:
        """Vectors whose inner product is the chosen similarity."""
        longest = longest_vector([self.params.index], self.params.rescore)
        return searchable(vectors, self.params.similarity, self.sides.label, longest)[0]

    def _plan_index(self, texts: int, dimension: int) -> IndexPlan | None:
        """The index to build, before the corpus is encoded, which can take hours; None for exact search."""
        if self.params.index == "flat":
            return None
        depth = self.params.skip + self.params.depth
        plan = plan_index(self.params.index, self.params, texts, dimension, depth)
        plan.tell(self.reporter)
        return plan

    def _search(self, corpus: VectorRows, plan: IndexPlan | None) -> Callable[[Vectors, int], Found]:
        if plan is None:
            return partial(exact_search, corpus)
        with self.reporter.track(f"building {self.params.index}", total=len(corpus), unit="texts") as task:
            return build_index(plan, corpus, task).search
