# SPDX-License-Identifier: Apache-2.0
"""Checks that objects compiled for one instruction set share no code with the rest of the program.

An inline function that such an object emits outside its own namespace can become the program's only copy, and then
crashes on a processor without that instruction set. Prints each such symbol; exits 1 if there is one.

Usage: python3 isa_symbols.py NAMESPACE OBJECT...
"""
import subprocess
import sys

SHARED = "WVu"  # nm's letters for symbols of which the linker keeps one copy


def shared_outside(namespace, nm_lines):
    """The names among `nm_lines` that are shared and do not mention `namespace`."""
    for line in nm_lines:
        kind, name = line.split(maxsplit=1)
        if kind in SHARED and namespace not in name:
            yield name


def main():
    namespace, objects = sys.argv[1], sys.argv[2:]
    offences = []
    for path in objects:
        lines = subprocess.run(["nm", "--demangle", "--defined-only", path],
                               capture_output=True, check=True, text=True).stdout.splitlines()
        offences += [f"{path}: {name}" for name in shared_outside(namespace, (line[17:] for line in lines if line))]
    print("\n".join(offences) if offences else f"{len(objects)} objects share nothing")
    sys.exit(1 if offences else 0)


if __name__ == "__main__":
    main()
