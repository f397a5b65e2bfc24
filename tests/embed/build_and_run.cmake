# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILD= -D SOURCE= -D CONFIG= -D COMPILER= -D SANITIZE= -P build_and_run.cmake
# Installs BUILD, then configures, builds and runs examples/embed outside of the project's own build.
set(work ${BUILD}/embed)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed -B ${work}/build -G Ninja -DCMAKE_PREFIX_PATH=${work}/prefix
    -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/embed ${SOURCE}/examples/mnist_cnn/model.onnx ${work}/trained.onnx)
