# gpusched_add_policy(NAME FILE...): the shared library NAME.so, a policy for `gpusched replay --policy ./NAME.so`.
# Optimised unless the project says otherwise, with the floating-point rules of gpusched: the same bits on every machine.
function(gpusched_add_policy name)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(optimise -O2)
  endif()
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_definitions(${name} PRIVATE GPUSCHED_OWN_POLICY)
  target_compile_options(${name} PRIVATE -ffp-contract=off ${optimise})
  target_link_libraries(${name} PRIVATE gpusched::plugin)
endfunction()
