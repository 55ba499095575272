# Install and export: find_package(gpusched) gives gpusched::gpusched, gpusched::plugin and gpusched_add_policy(), with
# COMPONENTS sim also gpusched::sim; the program is installed when it is built. Components: `program` is what a user runs,
# `development` what a compiler reads, `python` the Python package's module (python/CMakeLists.txt).
include(CMakePackageConfigHelpers)
set(folder_of_package ${CMAKE_INSTALL_LIBDIR}/cmake/gpusched)

install(TARGETS gpusched gpusched_plugin EXPORT gpuschedTargets COMPONENT development FILE_SET HEADERS COMPONENT development)
if(GPUSCHED_BUILD_CLI)
  # Its headers lie in a folder of their own, under the paths by which they include each other: "src/sim/replay.hpp".
  set_target_properties(gpusched_sim PROPERTIES EXPORT_NAME sim)
  install(TARGETS gpusched_sim EXPORT gpuschedSimTargets COMPONENT development)
  # For the Python package (GpuschedSimOfBuild.cmake).
  export(EXPORT gpuschedTargets NAMESPACE gpusched::)
  export(EXPORT gpuschedSimTargets NAMESPACE gpusched::)
  install(EXPORT gpuschedSimTargets NAMESPACE gpusched:: DESTINATION ${folder_of_package} COMPONENT development)
  foreach(folder src/base src/conditions src/policies src/calibration/profile src/sim src/report src/sweep src/world traces)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpusched-sim/${folder}
      COMPONENT development
      FILES_MATCHING PATTERN *.hpp PATTERN *.def PATTERN fixtures EXCLUDE PATTERN models EXCLUDE PATTERN page EXCLUDE
      PATTERN sample EXCLUDE)
  endforeach()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/traces/sample DESTINATION ${CMAKE_INSTALL_DATADIR}/gpusched COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT program)
endif()
install(EXPORT gpuschedTargets NAMESPACE gpusched:: DESTINATION ${folder_of_package} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gpuschedConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake INSTALL_DESTINATION ${folder_of_package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/GpuschedAddPolicy.cmake ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/gpuschedConfigVersion.cmake DESTINATION ${folder_of_package} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
  PATTERN build EXCLUDE)
