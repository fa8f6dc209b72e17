"""The values that a graph computes between its inputs and its output, watched while it runs on texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.exporting.graph_cleaning import quiet
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.extras import require
from sentcompress.models.token_batches import padded

Values = npt.NDArray[np.float32]


def watched(
    model: Any, names: Sequence[str], tokens: Sequence[Sequence[int]], padding: int
) -> Iterator[dict[str, Values]]:
    """The values that a graph computes under these names, for one text after another; nothing if there are no names.

    Args:
        tokens: token ids of the texts.
        padding: the id of the padding token.
    """
    import onnx

    distinct = list(dict.fromkeys(names))
    if not distinct:  # then onnxruntime would return every output
        return
    onnxruntime = require("onnxruntime")
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    copied.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in distinct)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with quiet():
        session = onnxruntime.InferenceSession(copied.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for ids in tokens:
        values = session.run(distinct, dict(zip(INPUTS, padded([ids], padding), strict=True)))
        yield dict(zip(distinct, values, strict=True))
