# SPDX-License-Identifier: Apache-2.0
# Code for one robot, generated while building and compiled into a target of yours.
#
# dynamics_generate(TARGET ROBOT
#   [FUNCTIONS inverse_dynamics ...]    # default: all
#   [SCALAR double|float|lanes]         # default: double
#   [LANGUAGE c++|c]                    # default: c++
#   [NAME name]                         # of files and functions; default: the file's
#   [LINK link] [PAYLOAD link ...] [GRAVITY]
#   [OPTIONS ...])                      # anything else that `dynamics generate` takes
#
# The target then includes <name_dynamics.hpp>, in C <name_dynamics.h>. DYNAMICS_EXECUTABLE names
# another `dynamics` than the package's own, for those who compile for another machine.
function(dynamics_generate target robot)
  cmake_parse_arguments(PARSE_ARGV 2 arg
    "GRAVITY" "SCALAR;LANGUAGE;NAME;LINK" "FUNCTIONS;PAYLOAD;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dynamics_generate: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(robot ${robot} ABSOLUTE)
  if(NOT EXISTS ${robot})
    message(FATAL_ERROR "dynamics_generate: there is no robot ${robot}")
  endif()
  if(NOT arg_NAME)
    get_filename_component(arg_NAME ${robot} NAME_WE)
    string(MAKE_C_IDENTIFIER ${arg_NAME} arg_NAME)
  endif()

  set(language CXX)
  set(extensions hpp cpp)
  if(arg_LANGUAGE STREQUAL "c")
    set(language C)
    set(extensions h c)
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT language IN_LIST languages)
    message(FATAL_ERROR "dynamics_generate: add ${language} to the LANGUAGES of your project()")
  endif()

  set(directory ${CMAKE_CURRENT_BINARY_DIR}/dynamics_generate/${target})
  set(files ${extensions})
  list(TRANSFORM files PREPEND ${directory}/${arg_NAME}_dynamics.)
  set(options --name ${arg_NAME} -o ${directory} ${arg_OPTIONS})
  if(arg_FUNCTIONS)
    string(REPLACE ";" "," functions "${arg_FUNCTIONS}")
    list(APPEND options --functions ${functions})
  endif()
  foreach(option IN ITEMS SCALAR LANGUAGE LINK)
    string(TOLOWER --${option} flag)
    if(arg_${option})
      list(APPEND options ${flag} ${arg_${option}})
    endif()
  endforeach()
  foreach(link IN LISTS arg_PAYLOAD)
    list(APPEND options --payload ${link})
  endforeach()
  if(arg_GRAVITY)
    list(APPEND options --gravity)
  endif()

  set(command realtime_dynamics::dynamics)
  if(DYNAMICS_EXECUTABLE)
    set(command ${DYNAMICS_EXECUTABLE})
  endif()
  add_custom_command(OUTPUT ${files}
    COMMAND ${command} generate ${robot} ${options}
    DEPENDS ${robot} ${command}
    COMMENT "Generating dynamics of ${arg_NAME}"
    VERBATIM)
  # In ISO C compilers leave products and sums apart where the processor could fuse them. GCC, where it
  # gathers numbers into vectors, takes up to a sixth longer.
  if(CMAKE_${language}_COMPILER_ID MATCHES "GNU|Clang")
    set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS
      "-ffp-contract=fast;-fno-tree-slp-vectorize")
  endif()
  target_sources(${target} PRIVATE ${files})
  target_include_directories(${target} PRIVATE ${directory})
endfunction()
