# What every target of our own is compiled with; none of it reaches a user of scandsl::scandsl.
function(scandsl_own_target target)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  set(cxx -Wall -Wextra -Wconversion -Wshadow)
  # g++ 12 takes the undefined operands of its own AVX-512 intrinsics for ours (GCC bug 105593).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND cxx -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  # Where a compiler joins a product and a sum, depends on what is around them: the same steps in two loops
  # would differ by their last bits, and results by the number of threads. What shall be joined says fma.
  list(APPEND cxx -ffp-contract=off)
  if(SCANDSL_NATIVE)
    list(APPEND cxx -march=native)
  endif()
  # g++ would look for memory to free from 128 MB on, again and again: a sixth of the time of files with many programs.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND cxx --param=ggc-min-heapsize=400000 --param=ggc-min-expand=200)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cxx}>"
                                           "$<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings;${SCANDSL_CUDA_NAMELESS}>")
endfunction()

# scandsl_many_programs(<target>): its files hold programs by the dozen. Under the sanitizers of the asan preset the tests of
# every address's alignment and of what lies beside arrays on the stack would be half of what they take to compile; the
# executor's own tests, of the same templates, have both.
function(scandsl_many_programs target)
  set(debug $<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>)
  target_compile_options(
    ${target} PRIVATE $<$<AND:${debug}>:-fno-sanitize=alignment>
                      "$<$<AND:${debug},$<CXX_COMPILER_ID:GNU>>:SHELL:--param asan-stack=0>")
endfunction()

# CMake would have precompiled headers taken for a system's, without warnings.
set(CMAKE_PCH_PROLOGUE "")

# scandsl_precompile(<target> <header>...): of the C++ files, so that each need not read them again, which is most of what
# a small one takes. A compiler cache does more, and would have to be told to trust them.
function(scandsl_precompile target)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# scandsl_share_driver(<target> [<like>]): of programs that many files run on the CPU, what goes around all of them is
# compiled once (ops/common/driver.cpp), in a library that the target links to. Its precompiled header is that of <like>, a
# target with the same flags, where one is given.
function(scandsl_share_driver target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include scandsl/exec/cpu/shared_driver.hpp>")
  elseif(ARGC GREATER 1)
    target_precompile_headers(${target} REUSE_FROM ${ARGV1})
  else() # a precompiled header is the first that is included, or none
    scandsl_precompile(${target} scandsl/exec/cpu/shared_driver.hpp)
  endif()
endfunction()
