// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A robot from its URDF alone, as hardware of ros2_control. The user page is
/// dynamics_ros/doc/simulated_system.md.

#include <array>
#include <atomic>
#include <hardware_interface/system_interface.hpp>
#include <limits>
#include <optional>
#include <rclcpp/service.hpp>
#include <realtime_tools/realtime_thread_safe_box.hpp>
#include <std_srvs/srv/set_bool.hpp>
#include <string>
#include <vector>

#include "dynamics_core/simulation/simulated_robot.hpp"
#include "dynamics_core/simulation/simulation_setup.hpp"
#include "realtime_dynamics/srv/set_payload.hpp"

namespace realtime_dynamics {

class SimulatedSystem : public hardware_interface::SystemInterface {
 public:
  using CallbackReturn = hardware_interface::CallbackReturn;
  using return_type = hardware_interface::return_type;

  /// A longer period is taken for a pause of the process, and only this much of it is simulated.
  static constexpr double max_period = 0.1;  // s

  CallbackReturn on_init(
      const hardware_interface::HardwareComponentInterfaceParams& params) override;
  CallbackReturn on_configure(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_error(const rclcpp_lifecycle::State& previous) override;

  return_type perform_command_mode_switch(const std::vector<std::string>& start_interfaces,
                                          const std::vector<std::string>& stop_interfaces) override;
  return_type read(const rclcpp::Time& time, const rclcpp::Duration& period) override;
  return_type write(const rclcpp::Time& time, const rclcpp::Duration& period) override;

 private:
  using SetBool = std_srvs::srv::SetBool;
  using SetPayload = srv::SetPayload;
  using StateHandle = hardware_interface::StateInterface::SharedPtr;
  using CommandHandle = hardware_interface::CommandInterface::SharedPtr;

  enum Quantity { position, velocity, effort, acceleration };  ///< commands have the first three

  struct CommandPort {
    CommandHandle handle;                                     ///< nullptr: not declared
    double value = std::numeric_limits<double>::quiet_NaN();  ///< as last read
    // A switch of controllers may come from another thread than the cycle.
    std::atomic<bool> claimed{false};
    std::atomic<bool> stale{false};  ///< written before it was claimed
  };

  struct Joint {
    std::string name;
    Eigen::Index dof = 0;
    double multiplier = 1.0, offset = 0.0;  ///< of a joint that mimics the one of this dof
    bool mimic = false;
    std::array<StateHandle, 4> states;    ///< by quantity; nullptr: not declared
    std::array<CommandPort, 3> commands;  ///< by quantity
  };

  struct Load {
    dynamics_core::Payload<double> payload{};
    double transition_time = 0.0;
    bool fresh = false;
  };
  struct Loads {
    std::vector<Load> by_link;
    bool fresh = false;
  };

  struct Fault {
    const char* service;
    std::atomic<bool> on{false};
  };

  // off the real-time path
  void build();
  void build_joints(const dynamics_core::Model& model);
  void create_services();
  void rest();
  void on_set_payload(const SetPayload::Request& request, SetPayload::Response& response);

  // the steps of a cycle
  void take_loads();
  void take_commands(Joint& joint);
  void hold();
  void publish_states();

  std::optional<dynamics_core::Model> model_;
  std::optional<dynamics_core::simulation::SimulatedRobot> robot_;
  double max_step_ = 0.0;
  std::vector<Joint> joints_;  ///< as declared
  dynamics_core::simulation::Setpoints setpoints_{0};
  dynamics_core::Status status_ = dynamics_core::Status::ok;  ///< of the last step

  Fault read_error_{"inject_read_error"}, write_error_{"inject_write_error"},
      nan_state_{"inject_nan_state"}, frozen_state_{"inject_frozen_state"};
  std::vector<rclcpp::Service<SetBool>::SharedPtr> fault_services_;
  rclcpp::Service<SetPayload>::SharedPtr payload_service_;
  realtime_tools::RealtimeThreadSafeBox<Loads> loads_;
};

}  // namespace realtime_dynamics
