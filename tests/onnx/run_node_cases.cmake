# SPDX-License-Identifier: Apache-2.0
# Unpacks ONNX's node conformance cases (tests/data/onnx_node_cases.tar.xz) into WORK and runs `onnx-train test` on them.
# Fails when a case fails, and when fewer than AT_LEAST pass: a case that was served must not become one that is skipped.
#   cmake -D BINARY=... -D ARCHIVE=... -D WORK=... -D AT_LEAST=... -P run_node_cases.cmake
file(REMOVE_RECURSE ${WORK})
file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${WORK})
execute_process(COMMAND ${BINARY} test ${WORK} --quiet --threads 1 OUTPUT_VARIABLE output RESULT_VARIABLE code)
file(REMOVE_RECURSE ${WORK})
string(REGEX REPLACE "(^|\n)skipped [^\n]*/[^\n]*" "" shown "${output}")
message("${shown}")
if(NOT output MATCHES "([0-9]+) passed, 0 failed, [0-9]+ skipped\n$" OR NOT code EQUAL 0)
  message(FATAL_ERROR "a case failed, or the run did not end (exit code ${code})")
endif()
if(CMAKE_MATCH_1 LESS AT_LEAST)
  message(FATAL_ERROR "${CMAKE_MATCH_1} cases passed, ${AT_LEAST} did before")
endif()
