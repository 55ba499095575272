# gpusched::sim and the program from GPUSCHED_SIM_OF, the folder of another build of this checkout, which is brought up to date
# first: the Python package is then made in a minute (docs/python.md).
cmake_path(ABSOLUTE_PATH GPUSCHED_SIM_OF BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE)
gpusched_is_build_of_this_checkout(${GPUSCHED_SIM_OF} is_ours)
if(NOT is_ours)
  message(FATAL_ERROR "GPUSCHED_SIM_OF: ${GPUSCHED_SIM_OF} is no build of this checkout; an empty one compiles the library")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${GPUSCHED_SIM_OF} --target gpusched_sim gpusched_program RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "GPUSCHED_SIM_OF: the program in ${GPUSCHED_SIM_OF} cannot be brought up to date")
endif()
include(GpuschedDependencies)
include(${GPUSCHED_SIM_OF}/gpuschedSimTargets.cmake)
add_custom_target(gpusched_program)  # pyproject.toml names it
