#!/bin/sh
# Installs a wheel into a new environment where no compiler can be found, runs two commands of it, and writes beside it
# what was installed (an SBOM in the format CycloneDX).
set -eu
wheel=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
mkdir "$folder/empty"
PATH="$folder/empty" CC=false "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: "$wheel"
"$folder/venv/bin/python" -m pip uninstall -q -y setuptools pip # they are not part of it
"${PYTHON:-python3}" -m cyclonedx_py environment --output-reproducible -o "$folder/sbom" "$folder/venv/bin/python"
sed 's#"file://[^"]*/#"#' "$folder/sbom" > "${wheel%%-cp*}.cdx.json" # the wheel by its name, not by where it was built
cd "$folder"
PATH="$folder/empty" venv/bin/priory --version
PATH="$folder/empty" venv/bin/priory demo --data-only
