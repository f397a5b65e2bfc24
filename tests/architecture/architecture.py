# SPDX-License-Identifier: Apache-2.0
"""Checks what the source tree promises about itself, line by line. Prints each offence; exits 1 if there is one.

Usage: python3 architecture.py ROOT
"""
import pathlib
import re
import sys

# Each folder may include itself and those before it.
ORDER = ["graph", "passes", "runtime", "cuda_ops", "tools", "tests"]

# Headers too heavy, or too foreign, to be in a header of ours.
HEAVY = re.compile(r"^(iostream|regex|nlohmann/|google/protobuf/|onnx/|oneapi/|dnnl)")
SERIALIZED = re.compile(r"^(google/protobuf/|onnx/)")
# Where the ONNX library and protobuf may appear: in sources of graph and in tests.
SERIALIZED_FOLDERS = {"graph", "tests"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(|\benviron\b")
SOURCES = {".h", ".cc", ".cu", ".cuh"}
LICENSED = SOURCES | {".py", ".cmake"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def check_include(path, folder, quote, target):
    """Yields what is wrong with one include line of `path`, a path relative to the root."""
    is_header = path.suffix in {".h", ".cuh"}
    if quote == '"':
        to = target.split("/")[0]
        if to not in ORDER or "/" not in target:
            yield f'include "{target}" relative to the root of the repository'
        elif ORDER.index(to) > ORDER.index(folder):
            yield f"{folder} must not know {to} (includes {target}); the order is {' <- '.join(ORDER)}"
    if is_header and HEAVY.match(target):
        yield f"a header must not include <{target}>: hide it in a .cc file"
    if SERIALIZED.match(target) and folder not in SERIALIZED_FOLDERS:
        yield f"<{target}> belongs behind graph's own types"


def check_line(path, line):
    folder = path.parts[0]
    include = INCLUDE.match(line)
    if include:
        yield from check_include(path, folder, *include.groups())
    code = line.split("//")[0]
    if folder not in {"tools", "tests"} and ENVIRONMENT.search(code):
        yield "environment variables are read in tools only"


def check_file(root, path):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if LICENCE not in "\n".join(lines[:2]):
        yield f"{path}:1: missing '{LICENCE}'"
    if path.suffix not in SOURCES:
        return
    for number, line in enumerate(lines, 1):
        for offence in check_line(path, line):
            yield f"{path}:{number}: {offence}"


def check_tree(root):
    """Yields every offence of the tree under `root`."""
    for folder in ORDER:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in LICENSED and file.is_file():
                yield from check_file(root, file.relative_to(root))


def main():
    root = pathlib.Path(sys.argv[1])
    if not (root / "graph").is_dir():
        sys.exit(f"{root} is not the root of the repository")
    offences = list(check_tree(root))
    print("\n".join(offences) if offences else "no offences")
    sys.exit(1 if offences else 0)


if __name__ == "__main__":
    main()
