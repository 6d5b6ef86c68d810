#!/bin/sh
# Builds the component: build.sh [OUTPUT]
set -eu
cd "$(dirname "$0")"
exec componentize-py --quiet --wit-path wit --world stats \
  componentize --python-path src plugin --output "${1:-stats.wasm}"
