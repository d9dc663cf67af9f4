# The install tree: headers, the compiled ops where they were built, and a package for find_package(scandsl).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/scandsl)

install(TARGETS scandsl EXPORT scandsl-targets)
if(TARGET scandsl_cuda)
  install(TARGETS scandsl_cuda EXPORT scandsl-targets)
endif()
if(TARGET scandsl_ops)
  install(TARGETS scandsl_ops EXPORT scandsl-targets)
endif()
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_SOURCE_DIR}/python/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.cuh")
install(
  EXPORT scandsl-targets
  NAMESPACE scandsl::
  DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/scandsl-config.cmake.in scandsl-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(scandsl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/scandsl-config.cmake ${PROJECT_BINARY_DIR}/scandsl-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/scandsl-openblas.cmake ${PROJECT_SOURCE_DIR}/cmake/scandsl-torch.cmake
              ${PROJECT_SOURCE_DIR}/cmake/scandsl-xsimd.cmake
        DESTINATION ${package_dir})
