"""Build the source archive and the wheel into a folder; the same commit gives the same bytes."""

import argparse
import filecmp
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_time_of_commit() -> int:
    """The seconds since 1970 that every file in the archives gets as its time."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def pack_again(archive: Path, seconds: int) -> None:
    """Write a .tar.gz again in the order of names, with one time, one owner and plain permissions."""
    with tarfile.open(archive) as opened:
        contents = [(entry, opened.extractfile(entry)) for entry in sorted(opened, key=lambda entry: entry.name)]
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as target:
                for entry, content in contents:
                    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = seconds, 0, 0, "", ""
                    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
                    entry.pax_headers = {}
                    target.addfile(entry, content)
            packed.seek(0)
            raw = packed.read()
    archive.write_bytes(gzip.compress(raw, mtime=seconds))


def build(folder: Path) -> list[Path]:
    """The source archive, and the wheel that is built from it."""
    seconds = find_time_of_commit()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("priory-*"):
        old.unlink()
    command = [sys.executable, "-m", "build", "-q", "--outdir", str(folder)]
    subprocess.run([*command, "--sdist", str(ROOT)], env=environment, check=True)
    (sources,) = folder.glob("*.tar.gz")
    pack_again(sources, seconds)
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(sources) as opened:
        opened.extractall(unpacked, filter="data")
        (tree,) = Path(unpacked).iterdir()
        subprocess.run([*command, "--wheel", str(tree)], env=environment, check=True)
    return sorted([sources, *folder.glob("*.whl")])


def check(folder: Path) -> None:
    """What must be true before an upload; a sentence says what is not."""
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src" / "priory" / "__init__.py").read_text())[1]
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.exit("the working tree has changes: commit them first")
    if not re.search(rf"^## {re.escape(version)}\b.*\d{{4}}-\d\d-\d\d", (ROOT / "CHANGELOG.md").read_text(), re.M):
        sys.exit(f"CHANGELOG.md has no section for {version} with a date")
    built = sorted([*folder.glob("*.tar.gz"), *folder.glob("*.whl")])
    with tempfile.TemporaryDirectory() as second:
        for one, other in zip(built, build(Path(second)), strict=True):
            if one.name != other.name or not filecmp.cmp(one, other, shallow=False):
                sys.exit(f"a second build gives another {one.name}")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)], check=True)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built]
    (folder / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums), end="")
    print(f"two builds gave equal bytes; next: git tag v{version}, and twine upload what the workflow `wheels` built")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="do not build there: check what was built, by a second build"
    )
    options = parser.parse_args()
    check(options.folder) if options.check else build(options.folder)
