#!/usr/bin/env python3
"""Makes the wheels hstujit and hstujit-host from an installation.

    tools/wheels.py --prefix PREFIX --out FOLDER

PREFIX is what `cmake --install --strip` of the components runtime, operations, compiler, torch and host gives; `make
wheel` does both. The package has the installation's layout inside it, so the libraries find one another as they do there.
hstujit-host puts its library beside those of hstujit. One file serves every CPython from 3.10, and every PyTorch. The
same input gives the same bytes. Each wheel brings the licence, and the notices of what is linked into its libraries.
pyproject.toml has their metadata. `pip install .` cannot make them, because scikit-build-core writes one distribution
from one pyproject.toml, settles its version before anything is built, and knows no manylinux tag.

A version ends with a digest of what both wheels hold, 0.1.0+build4c1d9a7e02: pip replaces one build by another, where
it would keep what has the same version, and installs hstujit-host beside the build alone that it was made with. Wheels
of an earlier build in FOLDER are removed.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST_LIBRARY = "lib/libhstujit_host.so"
BESIDE = tuple(f"lib/libhstujit_{name}.so" for name in ("bundle", "operations", "compiler", "torch"))
NATIVE = ("lib/libhstujit.so.*", *BESIDE, "bin/hstujit", "libexec/hstujit/*", "share/hstujit/records/**/*")
DOCUMENTS = "share/doc/hstujit"  # where the installation has the licence and the notices of each component
# Which glibc the oldest manylinux has whose libstdc++ has GLIBCXX_3.4.N, as (N, minor version of glibc).
LIBSTDCXX = ((19, 17), (22, 24), (24, 27), (28, 31), (29, 34), (30, 35), (33, 39))
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say

SUMMARY_OF_HOST = "The host backend of hstujit: its operators on the CPU"


class Mistake(Exception):
    """A mistake in the input, as a sentence."""


def project_of(root):
    """The table `project` of pyproject.toml."""
    if sys.version_info < (3, 11):
        raise Mistake(f"this is Python {sys.version.split()[0]}; making wheels needs 3.11 or newer")
    import tomllib  # from Python 3.11 on

    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def version_of(root, digest):
    """The version of CMakeLists.txt, and behind it the build."""
    found = re.search(r"project\(hstujit VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not found:
        raise Mistake(f"{root / 'CMakeLists.txt'} names no version")
    return f"{found.group(1)}+build{digest[:10]}"


def digest_of(files):
    digest = hashlib.sha256()
    for name, data, mode in files:
        digest.update(f"{name} {len(data)} {mode:o}\n".encode() + data)
    return digest.hexdigest()


def platform_of(files):
    """The oldest manylinux whose glibc and libstdc++ have every symbol that the files want."""
    glibc = [17]
    for file in files:
        symbols = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=False)
        if symbols.returncode != 0:
            raise Mistake(f"objdump -T {file} failed: {symbols.stderr.strip()}")
        glibc += [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols.stdout)]
        glibc += [glibc_beside(int(patch)) for patch in re.findall(r"GLIBCXX_3\.4\.(\d+)", symbols.stdout)]
    return f"manylinux_2_{max(glibc)}_{os.uname().machine}"


def glibc_beside(libstdcxx):
    """The minor version of the glibc that GLIBCXX_3.4.`libstdcxx` comes with; this machine's, if the table is older."""
    here = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
    return next((minor for patch, minor in LIBSTDCXX if libstdcxx <= patch), here)


class Wheel:
    """A wheel that is being written."""

    def __init__(self, name, version, platform, folder):
        self.distribution = f"{name.replace('-', '_')}-{version}"
        self.tag = f"py3-none-{platform}"
        self.path = folder / f"{self.distribution}-{self.tag}.whl"
        self.archive = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.records = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, EPOCH)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self, metadata, licences, entry_points=""):
        info = f"{self.distribution}.dist-info"
        self.add(f"{info}/METADATA", metadata.encode())
        for name, data, mode in licences:
            self.add(f"{info}/licenses/{name}", data, mode)
        wheel = f"Wheel-Version: 1.0\nGenerator: hstu-jit\nRoot-Is-Purelib: false\nTag: {self.tag}\n"
        self.add(f"{info}/WHEEL", wheel.encode())
        if entry_points:
            self.add(f"{info}/entry_points.txt", entry_points.encode())
        records = "\n".join([*self.records, f"{info}/RECORD,,", ""])
        self.archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", EPOCH), records)
        self.archive.close()
        return self.path


def metadata_of(project, name, version, summary, licences, lines, description=""):
    head = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: {summary}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {file}" for file, _, _ in licences),
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
        *lines,
    ]
    if description:
        head.append("Description-Content-Type: text/markdown")
    return "\n".join([*head, "", description])


def description():
    """docs/python.md for the page of an index, which has no files beside it: a link to one is its text there."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)  # code is every second part
    parts[::2] = [re.sub(r"\[([^]]+)\]\((?!https?://)[^)\s]+\)", r"\1", part) for part in parts[::2]]
    return "".join(parts) + "\nOther pages that this one names are in the folder `docs` of the repository.\n"


def licences_of(prefix, *components):
    """The licence and the notices of what is linked into the components, as (name, data, mode)."""
    names = ["LICENSE", *(f"NOTICES.{component}" for component in components)]
    missing = [name for name in names if not (prefix / DOCUMENTS / name).exists()]
    if missing:
        raise Mistake(f"{prefix / DOCUMENTS} has no {' and no '.join(missing)}: the installation is of an older build")
    return [(name, (prefix / DOCUMENTS / name).read_bytes(), 0o644) for name in names]


def stubs(prefix):
    """Names and contents of the type stubs, which the library itself describes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LD_LIBRARY_PATH": str(prefix / "lib"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        # -S: no package of this Python, nor an editable installation, comes before that of the clone.
        command = [sys.executable, "-S", str(ROOT / "tools" / "python_stubs.py"), folder]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Mistake(f"{' '.join(command)} failed: {made.stderr.strip()}")
        return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


def native_files(prefix):
    """Files of the installation that the wheel hstujit has, each once, without links that say the same."""
    found = {path for pattern in NATIVE for path in prefix.glob(pattern) if path.is_file()}
    soname = {path for path in found if re.fullmatch(r"libhstujit\.so\.\d+", path.name)}
    found -= {path for path in found if path.name.startswith("libhstujit.so.")} - soname
    if len(soname) != 1 or not all((prefix / library).exists() for library in BESIDE):
        raise Mistake(f"{prefix} is no installation of the components runtime, operations, compiler and torch: "
                      f"lib/libhstujit.so.N, {', '.join(BESIDE)}, bin/hstujit and libexec/hstujit/hstujit-worker")
    return sorted(found)


def build(prefix, out):
    project = project_of(ROOT)
    native = native_files(prefix)
    host = prefix / HOST_LIBRARY
    if not host.exists():
        raise Mistake(f"{prefix} has no {HOST_LIBRARY}: install the component host, too")
    out.mkdir(parents=True, exist_ok=True)
    for earlier in (*out.glob("hstujit-*.whl"), *out.glob("hstujit_host-*.whl")):
        earlier.unlink()
    binaries = [path for path in native if path.read_bytes()[:4] == b"\x7fELF"]
    package = ROOT / "python" / "hstujit"
    files = [
        (f"hstujit/{path.relative_to(package).as_posix()}", path.read_bytes(), 0o644)
        for path in sorted([*package.rglob("*.py"), package / "py.typed"])
    ]
    files += [(f"hstujit/{name}", data, 0o644) for name, data in stubs(prefix).items()]
    for path in native:
        mode = 0o755 if path in binaries else 0o644
        files.append((f"hstujit/{path.relative_to(prefix).as_posix()}", path.read_bytes(), mode))
    of_host = [(f"hstujit/{HOST_LIBRARY}", host.read_bytes(), 0o755)]
    licences, licences_of_host = licences_of(prefix, "runtime", "operations", "compiler"), licences_of(prefix, "host")
    version = version_of(ROOT, digest_of([*files, *of_host, *licences, *licences_of_host]))
    # pip removes a folder, and the empty ones below it, with the last file that lies directly in it. So this one makes
    # hstujit/ go with the wheel that is uninstalled last, whichever that is.
    of_host.append(("hstujit/host.version", f"{version}\n".encode(), 0o644))
    wheel = Wheel("hstujit", version, platform_of(binaries), out)
    for file in files:
        wheel.add(*file)
    # The host backend is in the other wheel, of the same build.
    extras = {**project["optional-dependencies"], "host": [f"hstujit-host=={version}"]}
    lines = []
    for extra, requirements in sorted(extras.items()):
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {of}; extra == "{extra}"' for of in requirements)]
    scripts = (f"{name} = {function}\n" for name, function in project["scripts"].items())
    metadata = metadata_of(project, "hstujit", version, project["description"], licences, lines, description())
    yield wheel.close(metadata, licences, "[console_scripts]\n" + "".join(scripts))

    wheel = Wheel("hstujit-host", version, platform_of([host]), out)
    for file in of_host:
        wheel.add(*file)
    requires = [f"Requires-Dist: hstujit=={version}"]
    metadata = metadata_of(project, "hstujit-host", version, SUMMARY_OF_HOST, licences_of_host, requires)
    yield wheel.close(metadata, licences_of_host)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="an installation")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the wheels go")
    options = parser.parse_args(arguments)
    for path in build(options.prefix.resolve(), options.out):
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"wheels: {mistake}", file=sys.stderr)
        sys.exit(2)
