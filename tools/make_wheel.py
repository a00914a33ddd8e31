#!/usr/bin/env python3
"""Packs a wheel from a build: tools/make_wheel.py BUILD OUTPUT [--python EXECUTABLE...]

The wheel serves every interpreter for which the build has a fast module and a backend of nanobind is installed, beside the
running one those given. What it needs of the system is read from its libraries: it is tagged with the glibc that they ask for,
and refused (exit 1) if that is newer than 2.35, if they need a library that not every system has, or if it passes 60 MB.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWEST_GLIBC = (2, 35)
# What policy manylinux_2_35 lets a wheel take from the system.
NEWEST = {"GLIBC": NEWEST_GLIBC, "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-(x86-64|aarch64))\.so\.\d+")
MOST_BYTES = 60 << 20


def output_of(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def facts(python: str) -> tuple[str, str, Path | None]:
    """Version without a dot, suffix of extension modules, and the backend of nanobind or None."""
    code = (
        "import sys, sysconfig, importlib.util as u; s = u.find_spec('nanobind_backend');"
        "print('%d%d' % sys.version_info[:2], sysconfig.get_config_var('EXT_SUFFIX'), s.submodule_search_locations[0] if s else '', sep='|')"
    )
    version, suffix, folder = output_of(python, "-c", code).strip().split("|")
    backend = Path(folder) / f"_nb_backend_v1{suffix}" if folder else None
    return version, suffix, backend if backend is not None and backend.exists() else None


def project() -> dict[str, str]:
    text = (ROOT / "pyproject.toml").read_text()
    return {key: re.search(rf'^{key} = "([^"]*)"$', text, re.M)[1] for key in ("version", "description", "license", "requires-python")}


def check_libraries(folder: Path) -> tuple[list[str], tuple[int, ...]]:
    """Complaints, and the newest glibc that a library asks for."""
    complaints: list[str] = []
    newest: tuple[int, ...] = (2, 17)
    own = {path.name for path in folder.rglob("*") if path.is_file()}
    binaries = [path for path in folder.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    for path in binaries:
        for family, version in set(re.findall(r"\b(GLIBCXX|GLIBC|CXXABI|GCC)_(\d+(?:\.\d+)+)", output_of("objdump", "-T", path))):
            number = tuple(int(part) for part in version.split("."))
            if number > NEWEST[family]:
                complaints.append(f"{path.name} asks for {family}_{version}")
            if family == "GLIBC":
                newest = max(newest, number)
        for needed in re.findall(r"NEEDED\s+(\S+)", output_of("objdump", "-p", path)):
            if needed not in own and not SYSTEM.fullmatch(needed):
                complaints.append(f"{path.name} needs {needed}")
    return complaints, newest


def metadata(fields: dict[str, str]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        "Name: flexor",
        f"Version: {fields['version']}",
        f"Summary: {fields['description']}",
        f"License: {fields['license']}",
        f"Requires-Python: {fields['requires-python']}",
        "Requires-Dist: numpy>=1.24",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "README.md").read_text(),
    ]
    return "\n".join(lines)


def pack(folder: Path, info: str, target: Path) -> None:
    def digest(data: bytes) -> str:
        return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

    record = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name = path.relative_to(folder).as_posix()
            data = path.read_bytes()
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # equal contents make equal wheels
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            wheel.writestr(entry, data)
            record.append(f"{name},{digest(data)},{len(data)}")
        record.append(f"{info}/RECORD,,")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--python", action="append", default=[])
    given = parser.parse_args()
    fields = project()

    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        package = folder / "flexor"
        shutil.copytree(ROOT / "python" / "flexor", package, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(
            ["cmake", "--install", given.build, "--component", "wheel", "--prefix", folder, "--strip"], check=True, stdout=subprocess.DEVNULL
        )
        modules = {module.name for module in package.glob("_flexor_fast*.so")}
        versions = []
        for python in [sys.executable, *given.python]:
            version, suffix, backend = facts(python)
            fast = f"_flexor_fast{suffix}"
            if backend is None or fast not in modules:
                print(f"left out: CPython {version} ({'no module of its own' if backend else 'no nanobind-backend'})")
                continue
            versions.append(version)
            modules.remove(fast)
            shutil.copy2(backend, package)
            subprocess.run(["strip", "--strip-unneeded", package / backend.name], check=True)
        for unserved in modules:
            (package / unserved).unlink()
        assert versions, "no interpreter to serve"

        complaints, glibc = check_libraries(folder)
        machine = output_of("uname", "-m").strip()
        platform = f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"
        versions.sort(key=int)
        tags = [f"cp{version}-cp{version}-{platform}" for version in versions]
        joined = ".".join(f"cp{version}" for version in versions)
        info = folder / f"flexor-{fields['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(metadata(fields))
        wheel_lines = ["Wheel-Version: 1.0", "Generator: flexor", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags)]
        (info / "WHEEL").write_text("\n".join(wheel_lines) + "\n")
        (info / "entry_points.txt").write_text(
            "[console_scripts]\nflexor = flexor._cli:main\n\n[torch_dynamo_backends]\nflexor = flexor.torch_backend:compile_graph\n"
        )
        shutil.copy2(ROOT / "LICENSE", info)
        for notice in ("nanobind-LICENSE", "NOTICE"):
            shutil.copy2(ROOT / "third_party" / notice, info)

        given.output.mkdir(parents=True, exist_ok=True)
        target = given.output / f"flexor-{fields['version']}-{joined}-{joined}-{platform}.whl"
        pack(folder, info.name, target)
    size = target.stat().st_size
    if size > MOST_BYTES:
        complaints.append(f"the wheel has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    for complaint in complaints:
        print(f"make_wheel: {complaint}", file=sys.stderr)
    if complaints:
        target.unlink()
        return 1
    print(f"{target} ({size / 1e6:.1f} MB, glibc {glibc[0]}.{glibc[1]} or newer, CPython {', '.join(versions)})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
