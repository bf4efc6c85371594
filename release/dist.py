"""Build the sdist and the wheel from the last commit, twice, and refuse what a stranger should not get.

The last commit  ->  build  ->  only what belongs in?  ->  build in another folder  ->  the same bytes?  ->  dist/

Needs `build` and `twine`: `make dist` has them.
"""

import argparse
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGED = {".py", ".css", ".csv", ".html", ".js", ".md", ".svg", ".toml", ".typed"}
COMPILED = (".so", ".pyd")
ONLY_IN_SDIST = {".pxd", ".cfg", ".in", ".cff", ".txt", ""}
MOST_BYTES = 5 << 20


def main() -> None:
    """Build, compare, look inside, and leave both files in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out
    commit, os.environ["SOURCE_DATE_EPOCH"] = printed("git", "log", "-1", "--format=%H %ct").decode().split()
    with tempfile.TemporaryDirectory() as folder:
        sdist, wheel = build(commit, Path(folder, "first"))
        check_sdist(sdist)
        check_wheel(wheel)
        run("twine", "check", "--strict", sdist, wheel)
        check_same((sdist, wheel), build(commit, Path(folder, "the second, éàü")))
        out.mkdir(exist_ok=True, parents=True)
        for path in (sdist, wheel):
            (out / path.name).write_bytes(path.read_bytes())
            print(f"{digest(path)}  {out / path.name}  {path.stat().st_size:,} bytes")


def build(commit: str, folder: Path) -> tuple[Path, Path]:
    """Build the sdist of a commit, and the wheel from the sdist, in a fresh folder."""
    with tarfile.open(fileobj=io.BytesIO(printed("git", "archive", "--format=tar", commit))) as archive:
        archive.extractall(folder / "tree", filter="data")
    run("build", "--outdir", folder, folder / "tree")
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    pack_again(sdist)
    return sdist, wheel


def pack_again(path: Path) -> None:
    """Write an archive again: names in order, of nobody, all of one second, which setuptools does not do."""
    day = int(os.environ["SOURCE_DATE_EPOCH"])
    packed = io.BytesIO()
    with tarfile.open(path) as given, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out:
        for member in sorted(given.getmembers(), key=lambda member: member.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime, member.pax_headers = day, {}
            member.mode = 0o755 if member.isdir() else 0o644
            out.addfile(member, given.extractfile(member) if member.isfile() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=day))


def check_same(first: tuple[Path, ...], second: tuple[Path, ...]) -> None:
    """Stop unless two builds gave the same bytes."""
    for one, two in zip(first, second, strict=True):
        if digest(one) != digest(two):
            sys.exit(f"{one.name} is not reproducible: two builds of one commit differ.")


def check_sdist(path: Path) -> None:
    """Stop unless the sdist holds the source, its metadata, and nothing else."""
    with tarfile.open(path) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    allowed = PACKAGED | ONLY_IN_SDIST
    check_names(path, names, lambda name: Path(name).suffix in allowed and not name.startswith(("tests", "docs")))


def check_wheel(path: Path) -> None:
    """Stop unless the wheel holds the package, its kernels for one Python, its metadata, and nothing else."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    tag = path.stem.split("-")[2].removeprefix("cp")
    kernels = [name for name in names if name.endswith(COMPILED)]
    strange = [name for name in kernels if not re.search(rf"[.-](cp|cpython-){tag}-", name)]
    if strange or not kernels:
        sys.exit(f"{path.name}: kernels must be there, and of Python {tag} only, got {strange or 'none'}.")
    package = [name for name in names if ".dist-info/" not in name and name not in kernels]
    check_names(path, package, lambda name: name.startswith("onbmacf/") and Path(name).suffix in PACKAGED)


def check_names(path: Path, names: list[str], belongs) -> None:
    """Stop if a name in an archive does not belong there, or the archive is larger than a package should be."""
    strange = [name for name in names if not belongs(name) or "__pycache__" in name]
    if strange:
        sys.exit(f"{path.name} holds what does not belong in it: {', '.join(strange)}")
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}.")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def run(module: str, *arguments: object) -> None:
    """Run a module of this environment, quietly unless it fails."""
    done = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{module} failed:\n{done.stdout}{done.stderr}")


def printed(*command: str) -> bytes:
    """Return what a command prints about this repository."""
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
