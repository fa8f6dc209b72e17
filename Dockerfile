# docker build -t sentcompress . && docker run --rm -v "$PWD:/data" sentcompress augment nli.jsonl
# On a GPU: docker run --gpus all ..., with NVIDIA's container toolkit; PyPI's torch for Linux on x86-64 has CUDA.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends apertium apertium-eng-spa wordnet-base wordnet-sense-index \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/sentcompress
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY sentcompress ./sentcompress
# torch first and alone, as scripts/install.sh does
RUN pip install --no-cache-dir "$(grep '^torch==' requirements.lock)" \
    && pip install --no-cache-dir --constraint requirements.lock '.[all]'

WORKDIR /data
ENTRYPOINT ["sentcompress"]
CMD ["--help"]
