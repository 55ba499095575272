# Who compiles the tests. With GPUSCHED_TESTS_BY_CLANG it is clang without optimisation, while the library that they test is built
# as the project says: in a sixth of the time that GCC needs at -O2, and what only clang warns of is seen too. Where clang is not
# found the project's compiler does it.
set(GPUSCHED_TEST_CLANG FALSE)
if(GPUSCHED_TESTS_BY_CLANG)
  find_program(GPUSCHED_CLANG NAMES clang++-14 clang++)
  if(GPUSCHED_CLANG)
    set(GPUSCHED_TEST_CLANG TRUE)
  endif()
endif()
message(STATUS "Tests compiled by clang: ${GPUSCHED_TEST_CLANG}")

# gpusched_compile_as_test(TARGET): compiles its sources so.
function(gpusched_compile_as_test target)
  if(NOT GPUSCHED_TEST_CLANG)
    return()
  endif()
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
    "${PROJECT_SOURCE_DIR}/cmake/compile_by.sh;${CMAKE_CXX_COMPILER_LAUNCHER};${GPUSCHED_CLANG};--")
  # GCC's names of warnings are among the flags. What GCC links is position-independent.
  target_compile_options(${target} PRIVATE -O0 -fPIE -Wno-unknown-warning-option)
endfunction()

# gpusched_link_as_test(TARGET LIBRARY...): the same program as if LIBRARY... were linked as usual, but of a function of a header
# that both the tests and the library compiled, the linker takes the first: the optimised one of the library.
function(gpusched_link_as_test target)
  target_link_libraries(${target} PRIVATE ${ARGN})
  if(GPUSCHED_TEST_CLANG)
    target_link_options(${target} BEFORE PRIVATE LINKER:--whole-archive,$<TARGET_FILE:gpusched_sim>,--no-whole-archive)
  endif()
endfunction()
