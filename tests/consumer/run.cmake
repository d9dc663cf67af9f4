# Installs the library built in ${library_build} to a fresh prefix, then configures, builds and runs the project
# in ${source} against that prefix alone; with a cuda_compiler the one in ${source}/cuda, too, which is not run.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${library_build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND}
    -S ${source}
    -B ${work}/build
    -G ${generator}
    -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher}
    -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/headers)
run(${work}/build/ops)

if(cuda_compiler)
  run(${CMAKE_COMMAND}
      -S ${source}/cuda
      -B ${work}/cuda
      -G ${generator}
      -D CMAKE_BUILD_TYPE=Release
      -D CMAKE_CXX_COMPILER=${compiler}
      -D CMAKE_CUDA_COMPILER=${cuda_compiler}
      -D CMAKE_CUDA_ARCHITECTURES=90
      -D CMAKE_CUDA_COMPILER_LAUNCHER=${launcher}
      -D CMAKE_PREFIX_PATH=${work}/prefix)
  run(${CMAKE_COMMAND} --build ${work}/cuda)
endif()
