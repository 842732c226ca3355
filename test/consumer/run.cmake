# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR into a fresh prefix, then configures, builds and runs the project beside this
# script against that prefix alone.
set(prefix ${BUILD_DIR}/consumer/prefix)
set(build ${BUILD_DIR}/consumer/build)
file(REMOVE_RECURSE ${BUILD_DIR}/consumer)

execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
  COMMAND_ERROR_IS_FATAL ANY)

function(consume compiler directory)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${directory} -G ${GENERATOR}
      -D CMAKE_BUILD_TYPE=${BUILD_TYPE}
      -D CMAKE_CXX_COMPILER=${compiler}
      -D CMAKE_CXX_FLAGS=${CXX_FLAGS}
      -D CMAKE_PREFIX_PATH=${prefix}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${directory} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${directory}/consumer COMMAND_ERROR_IS_FATAL ANY)
endfunction()

consume(${CXX} ${build})
# Compilers differ in how they spell the types of templates; a library has to serve both.
find_program(other_compiler clang++)
if(other_compiler AND NOT CXX MATCHES "clang")
  consume(${other_compiler} ${build}-clang)
endif()
