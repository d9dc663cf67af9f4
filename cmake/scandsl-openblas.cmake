# scandsl::openblas, the BLAS of the CPU's matrix products. Distributions put cblas.h in folders of different names;
# where there is no OpenBLAS, there is no target. Its OpenMP build comes first: it works on the threads that the programs
# between the products use, where another one would start threads of its own beside them.
find_library(OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-openmp openblas-pthread openblas)
find_path(OPENBLAS_INCLUDE_DIR NAMES openblas_config.h PATH_SUFFIXES openblas-openmp openblas-pthread openblas)
mark_as_advanced(OPENBLAS_LIBRARY OPENBLAS_INCLUDE_DIR)
if(OPENBLAS_LIBRARY AND OPENBLAS_INCLUDE_DIR AND NOT TARGET scandsl::openblas)
  add_library(scandsl::openblas INTERFACE IMPORTED)
  target_include_directories(scandsl::openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
  target_link_libraries(scandsl::openblas INTERFACE ${OPENBLAS_LIBRARY})
endif()
