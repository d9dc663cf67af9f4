# scandsl::xsimd, the headers of xsimd. Its own target may link xtl, which Debian's package does not bring and
# which scandsl does not need. Each xsimd release accepts only its own major version as a request, so the
# least version is compared here.
if(xsimd_VERSION VERSION_LESS 8)
  message(FATAL_ERROR "scandsl needs xsimd 8 or later, found ${xsimd_VERSION} in ${xsimd_DIR}")
endif()
if(NOT TARGET scandsl::xsimd)
  add_library(scandsl::xsimd INTERFACE IMPORTED)
  target_include_directories(scandsl::xsimd SYSTEM INTERFACE ${xsimd_INCLUDE_DIRS})
endif()
