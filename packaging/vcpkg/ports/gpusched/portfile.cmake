# An overlay port: it builds the tree that it is in.
cmake_path(SET SOURCE_PATH NORMALIZE "${CURRENT_PORT_DIR}/../../../..")

if(NOT "sim" IN_LIST FEATURES)
  set(VCPKG_BUILD_TYPE release)  # headers alone
endif()
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES sim GPUSCHED_BUILD_CLI)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DGPUSCHED_BUILD_TESTS=OFF
    -DGPUSCHED_BUILD_BENCH=OFF
    -DGPUSCHED_BUILD_PYTHON=OFF
    -DGPUSCHED_WITH_TORCH=OFF
    -DGPUSCHED_WITH_CUDA=OFF
    -DGPUSCHED_WITH_CLP=OFF
    -DGPUSCHED_WITH_PAGMO=OFF
    -DGPUSCHED_WITH_VEGA=OFF
    -DGPUSCHED_WITH_SPHINX=OFF
    -DGPUSCHED_UNITY_BUILD=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/gpusched)

if("sim" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES gpusched gpusched-train gpusched-search AUTO_CLEAN)
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
else()
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib")  # empty by now
endif()

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
