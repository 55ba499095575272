# Install and export: find_package(gpusched) gives gpusched::gpusched; the program is installed when it is built.
include(CMakePackageConfigHelpers)

install(TARGETS gpusched EXPORT gpuschedTargets FILE_SET HEADERS)
install(EXPORT gpuschedTargets NAMESPACE gpusched:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gpuschedConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
