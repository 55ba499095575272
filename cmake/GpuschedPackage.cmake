# `cpack -G DEB` in a build folder writes gpusched_VERSION_ARCHITECTURE.deb: the programs, the manual page and completions,
# the headers, gpusched::sim and the sample traces. dpkg-shlibdeps (dpkg-dev) finds what it depends on.
set(CPACK_PACKAGE_VENDOR "The gpusched authors")
set(CPACK_PACKAGE_CONTACT "The gpusched authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
  "gpusched replays job traces of GPU and HPC clusters under about fifty published scheduling policies, compares them with
confidence intervals, draws the runs, and trains schedulers by reinforcement learning.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
# Loaded at run time by the policies that solve linear programmes.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS coinor-libclp1)
# The consumers of the headers and of gpusched::sim.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, nlohmann-json3-dev, libarchive-dev, libssl-dev, libsqlite3-dev")
include(CPack)
