#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a compilation by nvcc and keeps what ptxas says of the kernels (ptxas -v) in OBJECT.ptxas, beside the object that
# -o names; everything else goes to stderr as it came. tests/cuda/register_budget.py reads those files.
object=
previous=
for argument in "$@"; do
  if [ "$previous" = "-o" ]; then object=$argument; fi
  previous=$argument
done
if [ -z "$object" ]; then exec "$@"; fi
"$@" 2>"$object.stderr"
status=$?
of_kernels='^ptxas info|^ +[0-9]+ bytes stack frame|^ +[0-9]+ bytes gmem'
grep -E "$of_kernels" "$object.stderr" >"$object.ptxas"
grep -vE "$of_kernels" "$object.stderr" >&2
rm -f "$object.stderr"
exit $status
