# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR into a fresh prefix, then configures, builds and runs the project beside this
# script against that prefix alone.
set(prefix ${BUILD_DIR}/consumer/prefix)
set(build ${BUILD_DIR}/consumer/build)
file(REMOVE_RECURSE ${BUILD_DIR}/consumer)

execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
  COMMAND_ERROR_IS_FATAL ANY)

# What the program prints, sizes of types among it, is the same whatever it is compiled with.
function(consume compiler flags directory)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${directory} -G ${GENERATOR}
      -D CMAKE_BUILD_TYPE=${BUILD_TYPE}
      -D CMAKE_CXX_COMPILER=${compiler}
      "-D CMAKE_CXX_FLAGS=${CXX_FLAGS} ${flags}"
      -D CMAKE_PREFIX_PATH=${prefix}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${directory} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${directory}/consumer OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  message("${compiler} ${flags}\n${printed}")
  if(NOT DEFINED expected)
    set(expected "${printed}" PARENT_SCOPE)
  elseif(NOT printed STREQUAL expected)
    message(FATAL_ERROR "not what the first program printed:\n${expected}")
  endif()
endfunction()

consume(${CXX} "" ${build})
# Eigen aligns and allocates by the instructions that it is compiled for; the library has to serve
# all of them.
consume(${CXX} -march=native ${build}-native)
consume(${CXX} -DEIGEN_DONT_VECTORIZE ${build}-scalar)
# Compilers differ in how they spell the types of templates; a library has to serve both.
find_program(other_compiler clang++)
if(other_compiler AND NOT CXX MATCHES "clang")
  consume(${other_compiler} -march=native ${build}-clang)
endif()
