# Stand-ins for the functions of vcpkg that the port calls, by their documentation: `cmake -P` runs the port with them and
# without vcpkg. Release builds alone, without libraries of vcpkg.
#   cmake -DCURRENT_PORT_DIR=... -DCURRENT_PACKAGES_DIR=... -DBUILD_DIR=... [-DFEATURES=sim] -P vcpkg_stand_ins.cmake
cmake_minimum_required(VERSION 3.25)
set(PORT gpusched)

function(vcpkg_check_features)
  cmake_parse_arguments(arg "" OUT_FEATURE_OPTIONS FEATURES ${ARGN})
  list(GET arg_FEATURES 0 feature)
  list(GET arg_FEATURES 1 option)
  set(value OFF)
  if(feature IN_LIST FEATURES)
    set(value ON)
  endif()
  set(${arg_OUT_FEATURE_OPTIONS} -D${option}=${value} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" SOURCE_PATH OPTIONS ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT EXISTS ${arg_SOURCE_PATH}/CMakeLists.txt)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${ARGN}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${BUILD_DIR} -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib --warn-uninitialized ${arg_OPTIONS}
    OUTPUT_QUIET ERROR_VARIABLE warnings COMMAND_ERROR_IS_FATAL ANY)
  if(warnings MATCHES "Manually-specified variables were not used[^\n]*:[\n ]+([A-Z_ \n]+)")
    message(FATAL_ERROR "options that the build does not have: ${CMAKE_MATCH_1}")
  endif()
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD_DIR} --target install OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves the package's files one folder up, which their way to the prefix then lacks.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(arg "" CONFIG_PATH "" ${ARGN})
  file(GLOB files ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*)
  file(INSTALL ${files} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} MESSAGE_NEVER)
  cmake_path(GET arg_CONFIG_PATH PARENT_PATH parent)
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/${parent})
  file(GLOB files ${CURRENT_PACKAGES_DIR}/share/${PORT}/*.cmake)
  set(step "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "${step}${step}${step}" "${step}${step}" text "${text}")
    string(REPLACE "/../../../\" ABSOLUTE" "/../../\" ABSOLUTE" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(arg AUTO_CLEAN "" TOOL_NAMES ${ARGN})
  foreach(name IN LISTS arg_TOOL_NAMES)
    file(INSTALL ${CURRENT_PACKAGES_DIR}/bin/${name} DESTINATION ${CURRENT_PACKAGES_DIR}/tools/${PORT}
      USE_SOURCE_PERMISSIONS MESSAGE_NEVER)
    file(REMOVE ${CURRENT_PACKAGES_DIR}/bin/${name})
  endforeach()
  file(GLOB left ${CURRENT_PACKAGES_DIR}/bin/*)
  if(left)
    message(FATAL_ERROR "programs that the port does not name: ${left}")
  endif()
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/bin)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" FILE_LIST ${ARGN})
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright MESSAGE_NEVER)
endfunction()

# A portfile knows its own folder by CMAKE_CURRENT_LIST_DIR, which include() sets.
include(${CURRENT_PORT_DIR}/portfile.cmake)
