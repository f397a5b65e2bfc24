# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache where it is installed. The base directory makes clones of the repository share results.
find_program(ONNXTRAIN_CCACHE ccache)
if(ONNXTRAIN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ONNXTRAIN_CCACHE})
endif()
