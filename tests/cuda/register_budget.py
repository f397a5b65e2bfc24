# SPDX-License-Identifier: Apache-2.0
"""Holds every CUDA kernel to its budget of registers, without spills.

Usage: register_budget.py BUDGETS [--write] FILE.ptxas...

FILE.ptxas is what `ptxas -v` said when an object was built (cmake/capture_ptxas.sh). BUDGETS has a line "registers
kernel" for each kernel, or "registers+bytes kernel" where one may have a stack frame of so many bytes; a kernel without
a line, or a line without a kernel, is an error as much as an exceeded budget. The largest figure of all architectures
counts. --write makes the file anew: a budget is the next of the steps at which one block of 256 threads fewer fits a
multiprocessor of 65,536 registers, so that crossing one is a decision.
"""
import pathlib
import re
import subprocess
import sys

STEPS = [32, 40, 48, 64, 80, 128, 255]
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def read_usage(files):
    """{mangled kernel: {architecture: (registers, bytes of stack, bytes of spills)}}"""
    usage = {}
    for file in files:
        kernel = architecture = None
        stack = stores = loads = 0
        for line in pathlib.Path(file).read_text().splitlines():
            if found := ENTRY.search(line):
                kernel, architecture = found.groups()
            elif found := SPILLS.search(line):
                stack, stores, loads = map(int, found.groups())
            elif (found := REGISTERS.search(line)) and kernel:
                usage.setdefault(kernel, {})[architecture] = (int(found.group(1)), stack, stores + loads)
                kernel = None
    return usage


def short_name(demangled):
    """Kernel and template arguments, without namespaces, result and parameters."""
    name = demangled.replace("onnxtrain::", "").replace("cuda_kernels::", "").replace("math::", "")
    name = name.removeprefix("void ")
    depth = 0
    for at, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            return name[:at]
    return name


def by_short_name(usage):
    names = subprocess.run(["c++filt"], input="\n".join(usage), text=True, capture_output=True, check=True).stdout
    return {short_name(name): usage[kernel] for kernel, name in zip(usage, names.splitlines())}


def read_budgets(path):
    budgets = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            figures, kernel = line.split(maxsplit=1)
            registers, _, stack = figures.partition("+")
            budgets[kernel] = (int(registers), int(stack or 0))
    return budgets


def offences(usage, budgets):
    for kernel, figures in sorted(usage.items()):
        if kernel not in budgets:
            yield f"{kernel}: no budget; add a line, or run register_budget.py with --write"
            continue
        for architecture, (registers, stack, spills) in sorted(figures.items()):
            where = f"{kernel} on {architecture}"
            if spills:
                yield f"{where}: {spills} bytes of spills"
            if registers > budgets[kernel][0]:
                yield f"{where}: {registers} registers, budget {budgets[kernel][0]}"
            if stack > budgets[kernel][1]:
                yield f"{where}: {stack} bytes of stack, budget {budgets[kernel][1]}"
    for kernel in sorted(budgets.keys() - usage.keys()):
        yield f"{kernel}: a budget, but no such kernel"


def write(path, usage):
    comment = [line for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
    lines = []
    for kernel, figures in sorted(usage.items()):
        registers, stack, _ = map(max, zip(*figures.values()))
        budget = next(step for step in STEPS if step >= registers)
        lines.append(f"{budget}{f'+{stack}' if stack else ''} {kernel}")
    path.write_text("\n".join(comment + lines) + "\n")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    path = pathlib.Path(arguments[0])
    usage = by_short_name(read_usage(arguments[1:]))
    if not usage:
        sys.exit("no kernel in " + (" ".join(arguments[1:]) or "no file"))
    if "--write" in sys.argv:
        write(path, usage)
    found = list(offences(usage, read_budgets(path)))
    for kernel, figures in sorted(usage.items()):
        print(kernel, *(f"{name}:{figure[0]}" for name, figure in sorted(figures.items())))
    print("\n".join(found))
    print(f"{len(usage)} kernels, {len(found)} offences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
