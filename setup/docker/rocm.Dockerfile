# petrel with torch and vLLM for GPUs of AMD: docs/gpus.md. Not yet built or run.
#
# PyPI has no wheels for ROCm, so torch and vLLM are those of vLLM's own image, one version older than the pins of
# engines/vllm/requirements-rocm.in.

FROM node:22.20.0-bookworm-slim@sha256:b21fe589dfbe5cc39365d0544b9be3f1f33f55f3c86c87a76ff65a02f8f5848e AS node

FROM vllm/vllm-openai-rocm:v0.31.0 AS tools
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates cmake g++ git make \
  && rm -rf /var/lib/apt/lists/*

FROM tools AS package
COPY . /src
WORKDIR /src
RUN npm run pack && mkdir /package && mv build/petrel-*.tgz /package/petrel.tgz

FROM tools
COPY --from=package /package/petrel.tgz /tmp/petrel.tgz
# peft is for adapters; the image has what it needs besides.
RUN echo "peft==0.21.2 --hash=sha256:106ab6077ff72c54d21577f9af5970e34bac7582cb14209f7b2b511e322a4eae" > /tmp/peft.txt \
  && python3 -m pip install --no-cache-dir --no-deps --require-hashes --break-system-packages -r /tmp/peft.txt \
  && npm install --global /tmp/petrel.tgz && rm /tmp/petrel.tgz /tmp/peft.txt \
  && useradd --create-home --uid 1001 petrel && install -d -o petrel -g petrel /home/petrel/.petrel
COPY setup/docker/start.sh /usr/local/bin/start.sh
USER 1001
WORKDIR /home/petrel
ENTRYPOINT ["/usr/local/bin/start.sh", "rocm", "python3", "python3"]
CMD ["petrel", "doctor"]
