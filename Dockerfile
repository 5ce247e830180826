# The image of reaperd: one environment below /opt/reaperd, on a base that has Python 3.11 or newer, and nothing else.
#
#   docker build --build-arg BASE=python:3.13-slim-bookworm@sha256:… --tag reaperd .
#
# Name the base by its digest, as above: a tag is moved by others. docs/install.md says how to run it.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
COPY requirements/build.txt requirements/run.txt requirements/
RUN python3 -m venv tools \
 && tools/bin/python -m pip install --no-cache-dir --disable-pip-version-check --quiet --require-hashes \
      --requirement requirements/build.txt \
 && python3 -m venv --without-pip /opt/reaperd \
 && tools/bin/python -m pip --python /opt/reaperd/bin/python install --no-cache-dir --quiet --no-compile \
      --only-binary :all: --require-hashes --requirement requirements/run.txt
COPY . .
# The root is read-only when it runs, so the bytecode is made here; it does not go by times, which a copy may change.
RUN tools/bin/python -m pip wheel --no-cache-dir --quiet --no-deps --no-build-isolation --wheel-dir dist . \
 && tools/bin/python -m pip --python /opt/reaperd/bin/python install --no-cache-dir --quiet --no-compile \
      --no-deps --no-index dist/*.whl \
 && python3 deploy/image/prune.py /opt/reaperd \
 && /opt/reaperd/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/reaperd/lib

FROM ${BASE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="reaperd" \
      org.opencontainers.image.description="Ends cloud machines that no row of a registry accounts for" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}"
RUN groupadd --gid 65532 reaperd \
 && useradd --no-log-init -K UID_MAX=65532 --uid 65532 --gid 65532 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin reaperd \
 && install -d -o 65532 -g 65532 -m 0700 /var/lib/reaperd
COPY --from=build /opt/reaperd /opt/reaperd
ENV PATH=/opt/reaperd/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
# No VOLUME: a ledger in a volume without a name is lost with its container, and nobody is told. With a read-only root, a
# volume that was forgotten ends the daemon at once, and it says why.
USER 65532:65532
EXPOSE 9745
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=4 CMD ["reaperd", "health"]
ENTRYPOINT ["reaperd"]
CMD ["run"]
