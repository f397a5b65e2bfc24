# SPDX-License-Identifier: Apache-2.0
# Errors planted in the communicators' sources, one a program: its tests must fail, and their output must name the error.
# The programs are built by the tests themselves (label slow).
add_library(nccl_mutant_tests OBJECT EXCLUDE_FROM_ALL
  nccl_communicator_test.cc nccl_failure_test.cc collective_progress_on_host.cc)
onnxtrain_set_options(nccl_mutant_tests)
target_link_libraries(nccl_mutant_tests PRIVATE onnxtrain_simulated_nccl onnxtrain_graph onnxtrain_test_base)

# Replaces `from` by `to` in cuda_ops/SOURCE.cc; of the tests that match `filter` one must fail and print `expected`.
function(onnxtrain_add_nccl_mutant name source from to filter expected)
  set(original ${PROJECT_SOURCE_DIR}/cuda_ops/${source}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} text)
  string(FIND "${text}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "mutant ${name}: ${original} no longer contains: ${from}")
  endif()
  string(REPLACE "${from}" "${to}" text "${text}")
  set(mutant ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name}.cc)
  file(GENERATE OUTPUT ${mutant} CONTENT "${text}")

  set(others ${ONNXTRAIN_NCCL_SOURCES} ${ONNXTRAIN_RENDEZVOUS_SOURCES} cuda_error.cc)
  list(REMOVE_ITEM others ${source}.cc)
  list(TRANSFORM others PREPEND ${PROJECT_SOURCE_DIR}/cuda_ops/)
  set(target nccl_mutant_${name})
  add_executable(${target} EXCLUDE_FROM_ALL ${mutant} ${others} $<TARGET_OBJECTS:nccl_mutant_tests>)
  onnxtrain_set_options(${target})
  target_compile_options(${target} PRIVATE -Wno-unused)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  target_link_libraries(${target} PRIVATE
    onnxtrain_simulated_nccl ${simulated_cudart} onnxtrain_graph onnxtrain_test_base GTest::gtest_main)
  add_test(NAME cuda/Slow.mutant_${name} COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D TARGET=${target}
    -D PROGRAM=$<TARGET_FILE:${target}> -D FILTER=${filter} -D EXPECTED=${expected}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/run_mutant.cmake)
  # The build tool runs once at a time.
  set_tests_properties(cuda/Slow.mutant_${name} PROPERTIES LABELS "cuda;slow" RESOURCE_LOCK nccl_mutants)
endfunction()

onnxtrain_add_nccl_mutant(without_group_end nccl_communicator
  "= ncclGroupEnd()" "= ncclSuccess" "*AllReduceSums*" "ncclGroupEnd is missing")
onnxtrain_add_nccl_mutant(without_finalize nccl_communicator
  "RETURN_IF_ERROR(rank->BeginLeave())" "(void)rank" "*AllReduceSums*" "live_communicators")
onnxtrain_add_nccl_mutant(without_device nccl_rank
  "RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));\n  ncclConfig_t" "ncclConfig_t" "*AllReduceSums*" "Duplicate GPU")
onnxtrain_add_nccl_mutant(shifted_offset nccl_rank
  "ncclReduceScatter(send, recv," "ncclReduceScatter(send, static_cast<float*>(recv) + rank_,"
  "*WorkInPlace*" "not in place")
onnxtrain_add_nccl_mutant(without_polling nccl_rank
  "return result == ncclSuccess ? OkStatus() : WaitUntilTaken(name)" "return OkStatus()"
  "*AllReduceSums*" "the call before is still in progress")
onnxtrain_add_nccl_mutant(wrong_stream nccl_rank
  "return function(communicator, stream)" "return function(communicator, stream_)"
  "*EnqueuesOnTheCallersStream*" "FAILED")
onnxtrain_add_nccl_mutant(without_waiting nccl_rank
  "OkStatus() : WaitOnHost()" "OkStatus() : OkStatus()" "*AllReduceSums*" "FAILED")
onnxtrain_add_nccl_mutant(without_completion nccl_rank
  "if (!marked) return OkStatus()" "return OkStatus()"
  "*NamesARankThatStaysAway*" "last completed by rank 0: 0")
onnxtrain_add_nccl_mutant(without_order nccl_rank
  "!same.ok()) return" "false) return" "*DifferentCollectives*" "ranks issue different collectives as number 1")
