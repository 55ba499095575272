# Functions that give every target of the project the same rules.

# The public headers of the header library: one file set, each header compiled alone (VERIFY_INTERFACE_HEADER_SETS). Those of
# `plugin` include a header that the build makes and are a target of their own (GpuschedPlugin.cmake).
function(gpusched_collect_headers target)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/gpusched/*.hpp)
  list(FILTER headers EXCLUDE REGEX "/include/gpusched/plugin/")
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  if(GPUSCHED_BUILD_TESTS)
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
endfunction()

# Warnings, C++20 and bit-reproducible floating point. Precondition: `target` is a compiled target.
function(gpusched_target_rules target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -ffp-contract=off>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GPUSCHED_WERROR}>>:-Werror>
    # GCC 12 warns of overlaps in std::string concatenation that do not exist (GCC bug 105651).
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
endfunction()

# Compiles the sources of TARGET that share a folder as one (GPUSCHED_UNITY_BUILD), at most MAXIMUM of them if it is given: most of a
# file's time goes into the same headers and templates again. FILES are absolute.
function(gpusched_compile_together target)
  cmake_parse_arguments(arg "" "MAXIMUM" "" ${ARGN})
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE group)
    string(REPLACE "/" "_" group ${group})
    if(arg_MAXIMUM)
      math(EXPR part "0${count_${group}} / ${arg_MAXIMUM} + 1")
      math(EXPR count_${group} "0${count_${group}} + 1")
      string(APPEND group _${part})
    endif()
    set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${GPUSCHED_UNITY_BUILD} UNITY_BUILD_MODE GROUP)
endfunction()

# gpusched_join_folders(TARGET GROUP FOLDER...): compiles the sources of TARGET in these folders as one.
# FOLDERS are relative to the source; those below them are not meant.
function(gpusched_join_folders target group)
  get_target_property(sources ${target} SOURCES)
  foreach(file IN LISTS sources)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(folder IN_LIST ARGN)
      set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()

# gpusched_add_sources(TARGET FOLDER [TOGETHER] [EXCEPT FILE...]): every .cpp below FOLDER, except those named, becomes
# a source of TARGET; TOGETHER: those of one folder are compiled as one.
function(gpusched_add_sources target folder)
  cmake_parse_arguments(arg "TOGETHER" "" "EXCEPT" ${ARGN})
  cmake_path(SET base NORMALIZE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${base}*.cpp)
  foreach(file IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  target_sources(${target} PRIVATE ${sources})
  if(arg_TOGETHER)
    gpusched_compile_together(${target} ${sources})
  endif()
endfunction()
