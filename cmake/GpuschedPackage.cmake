# `cpack -G DEB` in a build folder writes two Debian packages: gpusched_VERSION_ARCHITECTURE.deb (the programs, the manual
# page, completions, sample traces) and libgpusched-dev_VERSION_ARCHITECTURE.deb (headers, gpusched::sim, the CMake package,
# examples). The preset `deb` configures, builds and packs as the packages should be: cmake --workflow --preset deb.
set(GPUSCHED_MAINTAINER "The gpusched authors <gpusched@users.noreply.example>" CACHE STRING
  "Who answers for packages: Name <address>")
set(CPACK_PACKAGE_VENDOR "The gpusched authors")
set(CPACK_PACKAGE_CONTACT "${GPUSCHED_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")  # the synopsis of both
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_ALL development)
if(GPUSCHED_BUILD_CLI)
  list(APPEND CPACK_COMPONENTS_ALL program)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME gpusched)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)  # by dpkg-shlibdeps (dpkg-dev)
# Opened at run time by the policies that solve linear programmes.
if(GPUSCHED_CLP_FOUND)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS coinor-libclp1)
endif()
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "gpusched replays job traces of GPU and HPC clusters under about fifty
published scheduling policies, compares them with confidence intervals,
draws the runs as pages of figures, and trains schedulers by
reinforcement learning. The same input gives the same bytes.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgpusched-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# What find_package(gpusched COMPONENTS sim) looks for (gpuschedConfig.cmake.in).
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "nlohmann-json3-dev (>= 3.11), libeigen3-dev (>= 3.4), libarchive-dev (>= 3.6), libssl-dev (>= 3.0), libsqlite3-dev (>= 3.35), zlib1g-dev (>= 1:1.2)")
# A policy's library is loaded only by a program of the same headers.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "gpusched (= ${PROJECT_VERSION}), cmake (>= 3.25), g++ (>= 4:12)")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The header library of gpusched, for simulations and policies of one's
own, gpusched::sim as a static library with the readers of traces and all
policies, the CMake package of both, and examples.")

# A package without one of the programs is an error; what Debian asks of a package besides the installed files.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/all_programs.cmake ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
set(CPACK_GPUSCHED_BUILD ${PROJECT_BINARY_DIR})
get_property(CPACK_GPUSCHED_PROGRAMS GLOBAL PROPERTY gpusched_programs)
list(PREPEND CPACK_GPUSCHED_PROGRAMS gpusched)
set(CPACK_GPUSCHED_LICENCES "")
if(GPUSCHED_BUILD_CLI)
  foreach(package libcli11-dev nlohmann-json3-dev libeigen3-dev)
    list(APPEND CPACK_GPUSCHED_LICENCES /usr/share/doc/${package}/copyright)
  endforeach()
  if(GPUSCHED_VEGA_FOUND)
    list(APPEND CPACK_GPUSCHED_LICENCES ${gpusched_vega_licence})
  endif()
endif()
file(STRINGS ${PROJECT_SOURCE_DIR}/CITATION.cff released REGEX "^date-released: ")
string(REPLACE "date-released: " "" CPACK_GPUSCHED_RELEASED "${released}")
include(CPack)
