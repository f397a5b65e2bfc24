# SPDX-License-Identifier: Apache-2.0
# Errors planted in the backend's sources, one a program: its tests must fail, and their output must name the error. The
# programs are built by the tests themselves (label slow).

# Replaces FROM by TO in cuda_ops/SOURCE.cc and builds the program `name` of it, the object library TESTS, the other files
# of cuda_ops in MODULE, and LIBRARIES; of the tests that match FILTER one must fail and print EXPECTED.
function(onnxtrain_add_mutant name)
  cmake_parse_arguments(PARSE_ARGV 1 mutant "" "SOURCE;FROM;TO;FILTER;EXPECTED;TESTS" "MODULE;LIBRARIES")
  set(original ${PROJECT_SOURCE_DIR}/cuda_ops/${mutant_SOURCE}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} text)
  string(FIND "${text}" "${mutant_FROM}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "mutant ${name}: ${original} no longer contains: ${mutant_FROM}")
  endif()
  string(REPLACE "${mutant_FROM}" "${mutant_TO}" text "${text}")
  set(mutated ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name}.cc)
  file(GENERATE OUTPUT ${mutated} CONTENT "${text}")

  set(others ${mutant_MODULE})
  list(REMOVE_ITEM others ${mutant_SOURCE}.cc)
  list(TRANSFORM others PREPEND ${PROJECT_SOURCE_DIR}/cuda_ops/)
  add_executable(${name} EXCLUDE_FROM_ALL ${mutated} ${others} $<TARGET_OBJECTS:${mutant_TESTS}>)
  onnxtrain_set_options(${name})
  target_compile_options(${name} PRIVATE -Wno-unused)
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
  target_link_libraries(${name} PRIVATE ${mutant_LIBRARIES})
  add_test(NAME cuda/Slow.${name} COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D TARGET=${name}
    -D PROGRAM=$<TARGET_FILE:${name}> -D FILTER=${mutant_FILTER} -D EXPECTED=${mutant_EXPECTED}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/run_mutant.cmake)
  # The build tool runs once at a time.
  set_tests_properties(cuda/Slow.${name} PROPERTIES LABELS "cuda;slow" RESOURCE_LOCK mutants)
endfunction()
