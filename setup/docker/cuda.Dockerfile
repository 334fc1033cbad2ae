# petrel with torch and vLLM for GPUs of NVIDIA: docs/gpus.md. Not yet built or run.
#
# CUDA comes with the wheels of torch and vLLM, and the driver from the host (nvidia-container-toolkit). The Python of
# Debian 12 is 3.11, with which the lists of packages were made.

FROM node:22.20.0-bookworm-slim@sha256:b21fe589dfbe5cc39365d0544b9be3f1f33f55f3c86c87a76ff65a02f8f5848e AS tools
# A compiler: petrel's engine is built here, and kernels of Triton while it runs.
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    bubblewrap ca-certificates cmake g++ git make python3 python3-dev python3-pip python3-venv \
  && rm -rf /var/lib/apt/lists/*

FROM tools AS package
COPY . /src
WORKDIR /src
RUN npm run pack && mkdir /package && mv build/petrel-*.tgz /package/petrel.tgz

FROM tools AS engines
COPY engines/torch/requirements-cuda.txt /lists/torch.txt
COPY engines/vllm/requirements-cuda.txt /lists/vllm.txt
# An environment for each engine, since vLLM needs a torch of its own version.
RUN for engine in torch vllm; do \
    python3 -m venv "/opt/engines/$engine" \
    && "/opt/engines/$engine/bin/pip" install --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
      -r "/lists/$engine.txt" || exit 1; \
  done

FROM tools
COPY --from=engines /opt/engines /opt/engines
COPY --from=package /package/petrel.tgz /tmp/petrel.tgz
RUN npm install --global /tmp/petrel.tgz && rm /tmp/petrel.tgz \
  && useradd --create-home --uid 1001 petrel && install -d -o petrel -g petrel /home/petrel/.petrel
COPY setup/docker/start.sh /usr/local/bin/start.sh
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1001
WORKDIR /home/petrel
ENTRYPOINT ["/usr/local/bin/start.sh", "cuda", "/opt/engines/torch/bin/python", "/opt/engines/vllm/bin/python"]
CMD ["petrel", "doctor"]
