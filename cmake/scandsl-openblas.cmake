# scandsl::openblas, the BLAS of the CPU's matrix products. Where there is no OpenBLAS, there is no target.
#
# SCANDSL_OPENBLAS_ROOT: the folder of the Python package scipy_openblas32, an OpenBLAS that is newer than those of
# distributions (one that does not know a processor takes kernels of twenty years ago), and that a wheel of scandsl can
# ask for. Empty: the system's, of which distributions put cblas.h in folders of different names.
set(openblas_names "")
if(SCANDSL_OPENBLAS_ROOT)
  set(openblas_library ${SCANDSL_OPENBLAS_ROOT}/lib/libscipy_openblas.so)
  set(openblas_include ${SCANDSL_OPENBLAS_ROOT}/include)
  # Its functions have names of their own, so that it lives beside another OpenBLAS.
  foreach(function IN ITEMS cblas_sgemm cblas_dgemm openblas_get_parallel openblas_get_num_threads openblas_set_num_threads)
    list(APPEND openblas_names ${function}=scipy_${function})
  endforeach()
else()
  find_library(OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-openmp openblas-pthread openblas)
  find_path(OPENBLAS_INCLUDE_DIR NAMES openblas_config.h PATH_SUFFIXES openblas-openmp openblas-pthread openblas)
  mark_as_advanced(OPENBLAS_LIBRARY OPENBLAS_INCLUDE_DIR)
  set(openblas_library ${OPENBLAS_LIBRARY})
  set(openblas_include ${OPENBLAS_INCLUDE_DIR})
endif()
if(EXISTS "${openblas_library}" AND EXISTS "${openblas_include}" AND NOT TARGET scandsl::openblas)
  add_library(scandsl::openblas INTERFACE IMPORTED)
  target_include_directories(scandsl::openblas SYSTEM INTERFACE ${openblas_include})
  target_link_libraries(scandsl::openblas INTERFACE ${openblas_library})
  target_compile_definitions(scandsl::openblas INTERFACE ${openblas_names})
endif()
