# Install and export: find_package(gpusched) gives gpusched::gpusched, gpusched::plugin and gpusched_add_policy(), with
# COMPONENTS sim also gpusched::sim; the program is installed when it is built.
include(CMakePackageConfigHelpers)

install(TARGETS gpusched gpusched_plugin EXPORT gpuschedTargets FILE_SET HEADERS)
if(GPUSCHED_BUILD_CLI)
  # Its headers lie in a folder of their own, under the paths by which they include each other: "src/sim/replay.hpp".
  set_target_properties(gpusched_sim PROPERTIES EXPORT_NAME sim)
  install(TARGETS gpusched_sim EXPORT gpuschedSimTargets)
  install(EXPORT gpuschedSimTargets NAMESPACE gpusched:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
  foreach(folder src/base src/policies src/calibration/profile src/sim src/report src/sweep traces)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpusched-sim/${folder}
      FILES_MATCHING PATTERN *.hpp PATTERN *.def PATTERN fixtures EXCLUDE PATTERN models EXCLUDE PATTERN page EXCLUDE)
  endforeach()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/traces/sample DESTINATION ${CMAKE_INSTALL_DATADIR}/gpusched)
install(EXPORT gpuschedTargets NAMESPACE gpusched:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gpuschedConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/GpuschedAddPolicy.cmake ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
