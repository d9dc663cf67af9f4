# Libraries of ops for torch (docs/torch.md), by the part of LibTorch's interface that is the same from release to
# release: what is built here runs with torch 2.10 and every later one, and with every version of Python.
set(SCANDSL_TORCH_TARGET 0x020a000000000000) # 2.10

# Where torch is: in the environment that runs this, or that pip builds for (it hides that from builds, but not where it
# is).
if(NOT SCANDSL_TORCH_ROOT)
  find_package(Python3 3.9 COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND
      ${Python3_EXECUTABLE} -c
      "import importlib.util, pathlib, sysconfig
spec = importlib.util.find_spec('torch')
root = pathlib.Path(spec.origin).parent if spec else pathlib.Path(sysconfig.get_path('purelib'), 'torch')
print(root if (root / 'include/torch/csrc/stable').exists() else '')"
    OUTPUT_VARIABLE found
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(SCANDSL_TORCH_ROOT "${found}" CACHE PATH "the folder of the Python package torch" FORCE)
endif()
if(NOT SCANDSL_TORCH_ROOT)
  message(FATAL_ERROR "scandsl needs torch 2.10 or later to build torch ops; ${Python3_EXECUTABLE} finds none. Install it: pip install torch")
endif()

if(NOT TARGET scandsl::torch)
  add_library(scandsl_torch INTERFACE)
  add_library(scandsl::torch ALIAS scandsl_torch)
  target_compile_definitions(scandsl_torch INTERFACE TORCH_TARGET_VERSION=${SCANDSL_TORCH_TARGET})
  target_include_directories(scandsl_torch SYSTEM INTERFACE ${SCANDSL_TORCH_ROOT}/include)
  target_link_libraries(scandsl_torch INTERFACE scandsl::scandsl ${SCANDSL_TORCH_ROOT}/lib/libtorch_cpu.so ${CMAKE_DL_LIBS})
  if(EXISTS ${PROJECT_SOURCE_DIR}/python/include) # not installed yet
    target_include_directories(scandsl_torch INTERFACE ${PROJECT_SOURCE_DIR}/python/include)
  endif()
endif()

# scandsl_torch_module(<target> <source>...): a library of torch ops, torch.ops.<target>, that scandsl.load_library loads.
# Sources of C++ are for the CPU; those of CUDA (.cu) for both, where scandsl was built with CUDA and the project has it
# among its languages, and for the CPU where not.
function(scandsl_torch_module target)
  set(of_cuda ${ARGN})
  list(FILTER of_cuda INCLUDE REGEX "[.]cu$")
  set(others ${ARGN})
  list(FILTER others EXCLUDE REGEX "[.]cu$")
  add_library(${target} MODULE ${others})
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  # nvcc makes the kernels for CUDA tensors and a C++ compiler those for the CPU, from the same file.
  foreach(source IN LISTS of_cuda)
    string(MAKE_C_IDENTIFIER ${source} name)
    get_filename_component(source ${source} ABSOLUTE)
    set(for_cpu ${CMAKE_CURRENT_BINARY_DIR}/${target}/${name}.cpp)
    file(CONFIGURE OUTPUT ${for_cpu} CONTENT "#include \"${source}\"\n" @ONLY)
    target_sources(${target} PRIVATE ${for_cpu})
    if(TARGET scandsl::cuda AND CUDA IN_LIST languages)
      set_source_files_properties(${for_cpu} PROPERTIES COMPILE_DEFINITIONS SCANDSL_TORCH_CUDA=1)
      target_sources(${target} PRIVATE ${source})
      target_link_libraries(${target} PRIVATE scandsl::cuda)
      if(CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
        set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
      else() # CMake before 3.26 does not know that nvcc has C++20
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
      endif()
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE scandsl::torch)
  target_compile_definitions(${target} PRIVATE SCANDSL_TORCH_NAMESPACE="${target}")
  set_target_properties(
    ${target} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                         BUILD_WITH_INSTALL_RPATH ON)
  target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL)
endfunction()
