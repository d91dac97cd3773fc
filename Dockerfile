# syntax=docker/dockerfile:1
# Two stages: the first builds the wheel and installs it with its dependencies into a virtual environment, the second
# holds nothing but that environment. Build with other extras: docker build --build-arg EXTRAS='[kafka,local]' .

FROM python:3.12-slim-bookworm AS build
ARG EXTRAS="[kafka]"
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY collector collector
COPY scorers scorers
COPY dashboards dashboards
# Dependencies come as wheels only: nothing is compiled, so no compiler is needed and none is left behind.
RUN pip wheel --no-deps --wheel-dir /dist . \
 && python -m venv /opt/groundwatch \
 && /opt/groundwatch/bin/pip install --only-binary :all: "$(ls /dist/*.whl)${EXTRAS}" \
 && /opt/groundwatch/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="groundwatch" \
      org.opencontainers.image.description="Watches the quality of RAG applications in production" \
      org.opencontainers.image.licenses="Apache-2.0"
# The state directory is the only place that is ever written to, and only when the configuration names it; the root
# file system may be read-only (with a /tmp in memory).
RUN mkdir -p /etc/groundwatch /var/lib/groundwatch \
 && chown 65532:65532 /var/lib/groundwatch
COPY --from=build /opt/groundwatch /opt/groundwatch
ENV PATH="/opt/groundwatch/bin:$PATH" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GROUNDWATCH_BIND="0.0.0.0"
USER 65532:65532
WORKDIR /var/lib/groundwatch
EXPOSE 4317 4318
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', 4318, timeout=3); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["groundwatch"]
CMD ["run"]
