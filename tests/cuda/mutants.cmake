# SPDX-License-Identifier: Apache-2.0
# Errors planted in the communicators' sources.
add_library(nccl_mutant_tests OBJECT EXCLUDE_FROM_ALL
  nccl_communicator_test.cc nccl_failure_test.cc collective_progress_on_host.cc)
onnxtrain_set_options(nccl_mutant_tests)
target_link_libraries(nccl_mutant_tests PRIVATE onnxtrain_simulated_nccl onnxtrain_graph onnxtrain_test_base)

function(onnxtrain_add_nccl_mutant name source from to filter expected)
  onnxtrain_add_mutant(nccl_mutant_${name} SOURCE ${source} FROM "${from}" TO "${to}" FILTER ${filter}
    EXPECTED "${expected}" TESTS nccl_mutant_tests
    MODULE ${ONNXTRAIN_NCCL_SOURCES} ${ONNXTRAIN_RENDEZVOUS_SOURCES} cuda_error.cc
    LIBRARIES onnxtrain_simulated_nccl ${simulated_cudart} onnxtrain_graph onnxtrain_test_base GTest::gtest_main)
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
