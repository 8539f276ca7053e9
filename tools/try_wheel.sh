#!/bin/sh
# Installs a wheel into a new environment where no compiler can be found, and runs two commands of it.
set -eu
wheel=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
mkdir "$folder/empty"
PATH="$folder/empty" CC=false "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: "$wheel"
cd "$folder"
PATH="$folder/empty" venv/bin/priory --version
PATH="$folder/empty" venv/bin/priory demo --data-only
