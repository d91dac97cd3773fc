#!/usr/bin/env bash
# Builds the recorder: an OpenTelemetry Collector of published Go modules with an OTLP receiver and a Kafka exporter.
# Usage: tests/support/otelcol/build.sh OUTPUT. Takes Go 1.25 or newer, about 1 GB of modules, some minutes of CPU.
set -euo pipefail
output=$(realpath -m "$1")
cd "$(dirname "$0")"
nice go build -p "${BUILD_JOBS:-1}" -trimpath -ldflags '-s -w' -o "$output" .
