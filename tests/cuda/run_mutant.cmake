# SPDX-License-Identifier: Apache-2.0
# Builds TARGET in BUILD, runs PROGRAM with the tests of FILTER, and fails unless they fail and print EXPECTED.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target ${TARGET}
  RESULT_VARIABLE built OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT built EQUAL 0)
  message(FATAL_ERROR "${TARGET} does not build:\n${output}")
endif()
execute_process(COMMAND ${PROGRAM} --gtest_filter=${FILTER} TIMEOUT 30
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "no test notices ${TARGET}:\n${output}")
endif()
string(FIND "${output}" "${EXPECTED}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the tests fail, but do not say \"${EXPECTED}\":\n${output}")
endif()
