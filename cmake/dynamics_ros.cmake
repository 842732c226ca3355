# SPDX-License-Identifier: Apache-2.0
# The ROS 2 layer. Included by the root, so that what it exports reaches ament_package().

enable_language(C)  # of the messages' code
foreach(package IN ITEMS
    control_msgs controller_interface diagnostic_msgs diagnostic_updater
    generate_parameter_library geometry_msgs hardware_interface lifecycle_msgs pluginlib
    rclcpp rclcpp_components rclcpp_lifecycle realtime_tools rosidl_default_generators sensor_msgs
    std_msgs std_srvs trajectory_msgs)
  find_package(${package} REQUIRED)
endforeach()
set(ros ${PROJECT_SOURCE_DIR}/dynamics_ros)

# One RUNPATH for the build tree and for the installed package, as for the command: else CMake pads
# that of the build tree, the messages' libraries included. ROS finds its own libraries.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH $ORIGIN $ORIGIN/..)

# --- messages and services ------------------------------------------------------------------------
file(GLOB interfaces RELATIVE ${ros} CONFIGURE_DEPENDS ${ros}/msg/*.msg ${ros}/srv/*.srv)
list(TRANSFORM interfaces PREPEND ${ros}:)
rosidl_generate_interfaces(${PROJECT_NAME} ${interfaces}
  DEPENDENCIES geometry_msgs sensor_msgs std_msgs)
rosidl_get_typesupport_target(interface_library ${PROJECT_NAME} rosidl_typesupport_cpp)

# --- libraries ------------------------------------------------------------------------------------
# Nobody links these: they are loaded by name.

# Generated code does not have to pass our warnings.
function(without_warnings)
  foreach(library IN LISTS ARGN)
    set_target_properties(${library} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
      $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
endfunction()
without_warnings(${interface_library})

# ros_library(NAME SOURCES ... LINK ...)
function(ros_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  list(TRANSFORM arg_SOURCES PREPEND ${ros}/src/)
  add_library(${name} SHARED ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${ros}/include)
  target_link_libraries(${name}
    PUBLIC ${interface_library} ${arg_LINK} PRIVATE realtime_dynamics_warnings)
  install(TARGETS ${name} DESTINATION lib)
endfunction()

generate_parameter_library(feedforward_controller_parameters
  dynamics_ros/src/feedforward_controller_parameters.yaml)
without_warnings(feedforward_controller_parameters)
ros_library(realtime_dynamics_feedforward_controller
  SOURCES feedforward_controller.cpp feedforward_settings.cpp
  LINK realtime_dynamics::control feedforward_controller_parameters controller_interface::controller_interface
    diagnostic_updater::diagnostic_updater hardware_interface::hardware_interface
    pluginlib::pluginlib rclcpp::rclcpp rclcpp_lifecycle::rclcpp_lifecycle
    realtime_tools::realtime_tools ${control_msgs_TARGETS} ${trajectory_msgs_TARGETS})
pluginlib_export_plugin_description_file(
  controller_interface dynamics_ros/feedforward_controller.xml)

generate_parameter_library(external_torque_observer_parameters
  dynamics_ros/src/external_torque_observer_parameters.yaml)
without_warnings(external_torque_observer_parameters)
ros_library(realtime_dynamics_external_torque_observer
  SOURCES external_torque_observer.cpp
  LINK realtime_dynamics::control external_torque_observer_parameters
    controller_interface::controller_interface diagnostic_updater::diagnostic_updater
    hardware_interface::hardware_interface pluginlib::pluginlib rclcpp::rclcpp
    rclcpp_lifecycle::rclcpp_lifecycle realtime_tools::realtime_tools)
pluginlib_export_plugin_description_file(
  controller_interface dynamics_ros/external_torque_observer.xml)

ros_library(realtime_dynamics_simulated_system
  SOURCES simulated_system.cpp
  LINK realtime_dynamics::simulation hardware_interface::hardware_interface pluginlib::pluginlib
    rclcpp::rclcpp rclcpp_lifecycle::rclcpp_lifecycle realtime_tools::realtime_tools ${std_srvs_TARGETS})
pluginlib_export_plugin_description_file(hardware_interface dynamics_ros/simulated_system.xml)

generate_parameter_library(dynamics_server_parameters
  dynamics_ros/src/dynamics_server_parameters.yaml)
without_warnings(dynamics_server_parameters)
file(GLOB server_sources RELATIVE ${ros}/src CONFIGURE_DEPENDS ${ros}/src/dynamics_server*.cpp)
ros_library(realtime_dynamics_server
  SOURCES ${server_sources}
  LINK realtime_dynamics::core dynamics_server_parameters rclcpp::rclcpp rclcpp_components::component
    ${geometry_msgs_TARGETS} ${sensor_msgs_TARGETS} ${std_msgs_TARGETS} ${trajectory_msgs_TARGETS})
rclcpp_components_register_node(realtime_dynamics_server
  PLUGIN realtime_dynamics::DynamicsServer
  EXECUTABLE dynamics_server
  EXECUTOR MultiThreadedExecutor)

# What a tool that reads the sources needs before it can.
add_custom_target(generated_code)
add_dependencies(generated_code
  ${PROJECT_NAME}__cpp feedforward_controller_parameters dynamics_server_parameters
  external_torque_observer_parameters)

# A plugin for those who use unisa-acg's interface already.
find_package(inverse_dynamics_solver QUIET)
if(inverse_dynamics_solver_FOUND)
  ros_library(realtime_dynamics_solver
    SOURCES inverse_dynamics_solver.cpp
    LINK realtime_dynamics::core pluginlib::pluginlib rclcpp::rclcpp)
  target_include_directories(realtime_dynamics_solver SYSTEM PRIVATE
    ${inverse_dynamics_solver_INCLUDE_DIRS})
  pluginlib_export_plugin_description_file(
    inverse_dynamics_solver dynamics_ros/inverse_dynamics_solver.xml)
endif()

# Reads bags for `dynamics identify`, which links no ROS.
find_package(rosbag2_cpp QUIET)
if(rosbag2_cpp_FOUND)
  add_executable(bag_to_csv dynamics_ros/src/bag_to_csv.cpp)
  target_link_libraries(bag_to_csv PRIVATE realtime_dynamics::core rclcpp::rclcpp
    rosbag2_cpp::rosbag2_cpp ${sensor_msgs_TARGETS} realtime_dynamics_warnings)
  install(TARGETS bag_to_csv DESTINATION lib/${PROJECT_NAME})
else()
  message(STATUS "rosbag2_cpp not found: `dynamics identify` reads no bags")
endif()

install(PROGRAMS dynamics_ros/scripts/demo_trajectory.py DESTINATION lib/${PROJECT_NAME})
install(DIRECTORY launch DESTINATION share/${PROJECT_NAME})
ament_export_dependencies(geometry_msgs rosidl_default_runtime sensor_msgs std_msgs)
unset(CMAKE_BUILD_WITH_INSTALL_RPATH)
unset(CMAKE_INSTALL_RPATH)
