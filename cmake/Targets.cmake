# SPDX-License-Identifier: Apache-2.0
# How targets of this project are compiled. Nothing here is global: each target asks for it.

# Warnings are errors with the compiler the project is developed with; a newer compiler's new warnings must not keep a
# user from building.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(ONNXTRAIN_WERROR_DEFAULT ON)
else()
  set(ONNXTRAIN_WERROR_DEFAULT OFF)
endif()
option(ONNXTRAIN_WERROR "Treat warnings as errors" ${ONNXTRAIN_WERROR_DEFAULT})

function(onnxtrain_set_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${ONNXTRAIN_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns falsely on "literal" + std::string (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(ONNXTRAIN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ONNXTRAIN_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${ONNXTRAIN_SANITIZE})
  endif()
endfunction()

# A folder's library. Headers are included as "folder/file.h" from the repository root, or from the installed
# include/onnx-train.
function(onnxtrain_add_library target)
  set(sources ${ARGN})
  if(NOT sources)
    file(TOUCH ${PROJECT_BINARY_DIR}/empty.cc)
    set(sources ${PROJECT_BINARY_DIR}/empty.cc)
  endif()
  add_library(${target} STATIC ${sources})
  onnxtrain_set_options(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/onnx-train>)
endfunction()

# Floating-point flags of kernel code: no errno from math functions, no observable traps. Results do not change.
set(ONNXTRAIN_KERNEL_OPTIONS -fno-math-errno -fno-trapping-math)

# Makes OpenMP available to kernel code, or in the serial build only its vector pragmas.
function(onnxtrain_use_openmp target)
  if(ONNXTRAIN_SERIAL_KERNELS)
    target_compile_definitions(${target} PRIVATE ONNXTRAIN_SERIAL_KERNELS=1)
    target_compile_options(${target} PRIVATE -fopenmp-simd -Wno-unknown-pragmas)
  else()
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# Compiles each file once per instruction set, so that one source of a loop serves all processors:
#   level    namespace (ONNXTRAIN_ISA_NAMESPACE)   told to `target` by
#   baseline isa_v2                                 always there
#   AVX2     isa_v3                                 ONNXTRAIN_HAVE_ISA_V3=1
#   AVX-512  isa_v4                                 ONNXTRAIN_HAVE_ISA_V4=1
# Such a file puts all it defines into that namespace, and may call no inline function of another header that the
# compiler might emit outside of it: the linker would keep one copy for all processors. A test looks for such copies in optimised builds.
function(onnxtrain_add_isa_sources target)
  if(NOT ARGN)
    return()
  endif()
  set(levels v2)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND levels v3 v4)
  endif()
  foreach(level IN LISTS levels)
    set(objects ${target}_isa_${level})
    add_library(${objects} OBJECT ${ARGN})
    onnxtrain_set_options(${objects})
    onnxtrain_use_openmp(${objects})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${objects} PRIVATE ONNXTRAIN_ISA_NAMESPACE=isa_${level})
    # In every configuration: the accuracy of the formulas is that of fused multiply-adds, which -O1 does not form.
    target_compile_options(${objects} PRIVATE ${ONNXTRAIN_KERNEL_OPTIONS} -O3)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      target_compile_options(${objects} PRIVATE -march=x86-64-${level})
    endif()
    string(TOUPPER ${level} upper)
    target_compile_definitions(${target} PRIVATE ONNXTRAIN_HAVE_ISA_${upper}=1)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY ONNXTRAIN_ISA_LEVELS ${level})
  endforeach()
endfunction()
