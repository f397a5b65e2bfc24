# SPDX-License-Identifier: Apache-2.0
# Our CUDA kernels without a GPU: what nvcc made of them, and the same files compiled for the host, plain and under
# ThreadSanitizer and AddressSanitizer with UndefinedBehaviorSanitizer.
set(case_sources binary_loss_cases.cc cumulative_cases.cc device_case.cc dropout_cases.cc elementwise_cases.cc
  group_normalization_cases.cc index_cases.cc made_cases.cc reduction_cases.cc resize_cases.cc row_cases.cc
  sort_cases.cc step_cases.cc window_cases.cc)

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Registers and spills, from ptxas.
add_test(NAME cuda/register_budget
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/register_budget.py
    ${CMAKE_CURRENT_SOURCE_DIR}/register_budget.txt
    "$<JOIN:$<TARGET_OBJECTS:onnxtrain_cuda_kernels>,.ptxas$<SEMICOLON>>.ptxas"
  COMMAND_EXPAND_LISTS)
add_test(NAME cuda/register_budget_can_fail COMMAND ${Python3_EXECUTABLE} -B -m unittest register_budget_test
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(cuda/register_budget cuda/register_budget_can_fail PROPERTIES LABELS cuda)

# Results and orders.
add_executable(device_code_test device_code_test.cc ${case_sources})
onnxtrain_set_options(device_code_test)
target_link_libraries(device_code_test PRIVATE
  onnxtrain_host_kernels onnxtrain_graph onnxtrain_test_base GTest::gtest_main)
onnxtrain_discover_tests(device_code_test cuda "*" cuda)

if(ONNXTRAIN_SANITIZE)  # the programs below bring their own
  return()
endif()

# onnxtrain_add_device_program(target sanitizers, sources...): a program with device code in it. The runtime of blocks
# is not instrumented under ThreadSanitizer: it says itself what is ordered.
function(onnxtrain_add_device_program target sanitizers)
  set(folder ${PROJECT_SOURCE_DIR}/tests/simulated_cuda)
  add_library(${target}_runtime OBJECT ${folder}/host_cuda.cc ${folder}/fiber.cc)
  add_executable(${target} ${ARGN})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_runtime>)
  set_property(TARGET ${target} PROPERTY CXX_STANDARD 20)
  foreach(part ${target} ${target}_runtime)
    target_include_directories(${part} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(${part} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_definitions(${part} PRIVATE ONNXTRAIN_HOST_CUDA_HEADER="tests/simulated_cuda/host_cuda.h")
    target_compile_options(${part} PRIVATE -O1 -g1 -fno-omit-frame-pointer)
  endforeach()
  if(sanitizers STREQUAL "thread")
    target_compile_definitions(${target}_runtime PRIVATE ONNXTRAIN_FIBERS_UNDER_TSAN)
  else()
    target_compile_options(${target}_runtime PRIVATE -fsanitize=${sanitizers})
    target_compile_definitions(${target} PRIVATE ONNXTRAIN_HOST_CUDA_ONE_THREAD)
  endif()
  target_compile_options(${target} PRIVATE -fsanitize=${sanitizers} -fno-sanitize-recover=all -Wno-unknown-pragmas)
  target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
endfunction()

file(GLOB kernel_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda_ops/kernels/*.cu)
set_source_files_properties(${kernel_sources} planted_faults.cu PROPERTIES LANGUAGE CXX)

# Where the fault is planted whose name stands behind "planted:".
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/planted_faults.cu)
function(onnxtrain_find_planted fault line)
  file(STRINGS planted_faults.cu lines)
  set(number 0)
  foreach(text IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(text MATCHES "// planted: ${fault}$")
      set(${line} ${number} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "no line of planted_faults.cu is marked: planted: ${fault}")
endfunction()

# onnxtrain_add_sanitized(name, sanitizers, cases of each name, faults...)
function(onnxtrain_add_sanitized name sanitizers cases)
  onnxtrain_add_device_program(device_code_${name} ${sanitizers} device_code_sanitized.cc ${case_sources}
    ${kernel_sources} ${PROJECT_SOURCE_DIR}/graph/dtype.cc)
  add_test(NAME cuda/device_code_under_${name} COMMAND device_code_${name} ${cases})
  onnxtrain_add_device_program(planted_faults_${name} ${sanitizers} planted_faults.cu)
  add_test(NAME cuda/no_fault_under_${name} COMMAND planted_faults_${name} clean)
  set(tests cuda/device_code_under_${name} cuda/no_fault_under_${name})
  foreach(fault IN LISTS ARGN)
    onnxtrain_find_planted(${fault} line)
    set(test cuda/planted_${fault}_is_reported)
    add_test(NAME ${test} COMMAND planted_faults_${name} ${fault})
    set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "planted_faults.cu:${line}")
    list(APPEND tests ${test})
  endforeach()
  set_tests_properties(${tests} PROPERTIES LABELS cuda
    ENVIRONMENT "TSAN_OPTIONS=history_size=1;ASAN_OPTIONS=detect_leaks=0")
endfunction()

onnxtrain_add_sanitized(tsan thread 1
  missing_barrier missing_second_barrier missing_warp_barrier unordered_sum unordered_blocks)
onnxtrain_add_sanitized(asan address,undefined 1000 static_shared dynamic_shared global)
add_test(NAME cuda/slow_device_code_under_tsan COMMAND device_code_tsan 4)
set_tests_properties(cuda/slow_device_code_under_tsan PROPERTIES LABELS "cuda;slow" ENVIRONMENT "TSAN_OPTIONS=history_size=1")
