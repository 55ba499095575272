# gpusched::plugin: the headers by which a policy becomes a shared library (`--policy ./mine.so`), with headers_hash.hpp: a
# SHA-256 of all headers that such a library reads the engine's state by. Program and library must agree in it.
set(GPUSCHED_GENERATED_HEADERS ${CMAKE_CURRENT_BINARY_DIR}/generated)
set(state_headers "")
foreach(folder core data engine plugin policy serving trials)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/gpusched/${folder}/*.hpp)
  list(APPEND state_headers ${headers})
endforeach()
list(SORT state_headers)
set(hashes "")
foreach(header IN LISTS state_headers)
  file(SHA256 ${PROJECT_SOURCE_DIR}/include/${header} hash)
  string(APPEND hashes "${header} ${hash}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/${header})
endforeach()
string(SHA256 GPUSCHED_HEADERS_HASH "${hashes}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/headers_hash.hpp.in
  ${GPUSCHED_GENERATED_HEADERS}/gpusched/plugin/headers_hash.hpp @ONLY)

add_library(gpusched_plugin INTERFACE)
add_library(gpusched::plugin ALIAS gpusched_plugin)
set_target_properties(gpusched_plugin PROPERTIES EXPORT_NAME plugin)
target_link_libraries(gpusched_plugin INTERFACE gpusched)
target_sources(gpusched_plugin INTERFACE FILE_SET HEADERS
  BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${GPUSCHED_GENERATED_HEADERS}
  FILES ${PROJECT_SOURCE_DIR}/include/gpusched/plugin/plugin_boundary.hpp
    ${PROJECT_SOURCE_DIR}/include/gpusched/plugin/policy_plugin.hpp
    ${GPUSCHED_GENERATED_HEADERS}/gpusched/plugin/headers_hash.hpp)

include(${CMAKE_CURRENT_LIST_DIR}/GpuschedAddPolicy.cmake)
