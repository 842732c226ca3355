// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The momentum observer of dynamics_core as a chainable controller of ros2_control that commands
/// nothing. The user page is dynamics_ros/doc/external_torque_observer.md.

#include <array>
#include <controller_interface/chainable_controller_interface.hpp>
#include <cstdint>
#include <diagnostic_updater/diagnostic_updater.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <realtime_tools/realtime_publisher.hpp>
#include <realtime_tools/realtime_thread_safe_box.hpp>
#include <string>
#include <vector>

#include "dynamics_core/control/momentum_observer.hpp"
#include "realtime_dynamics/external_torque_observer_parameters.hpp"
#include "realtime_dynamics/msg/external_effort.hpp"
#include "realtime_dynamics/srv/set_payload.hpp"

namespace realtime_dynamics {

class ExternalTorqueObserver : public controller_interface::ChainableControllerInterface {
 public:
  using CallbackReturn = controller_interface::CallbackReturn;
  using Params = external_torque_observer::Params;
  using Message = msg::ExternalEffort;
  using SetPayload = srv::SetPayload;

  CallbackReturn on_init() override;
  CallbackReturn on_configure(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_cleanup(const rclcpp_lifecycle::State& previous) override;
  CallbackReturn on_error(const rclcpp_lifecycle::State& previous) override;

  [[nodiscard]] controller_interface::InterfaceConfiguration command_interface_configuration()
      const override;
  [[nodiscard]] controller_interface::InterfaceConfiguration state_interface_configuration()
      const override;

  controller_interface::return_type update_reference_from_subscribers(
      const rclcpp::Time& time, const rclcpp::Duration& period) override;
  controller_interface::return_type update_and_write_commands(
      const rclcpp::Time& time, const rclcpp::Duration& period) override;

 protected:
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list()
      override;

 private:
  /// What other threads want of the control loop, which only tries the lock.
  struct Loads {
    struct Load {
      dynamics_core::Payload<double> payload{};
      double transition_time = 0.0;
      bool fresh = false;
    };
    std::vector<Load> by_link;
    bool fresh = false;
  };

  /// What the control loop tells the diagnostics.
  struct Report {
    bool active = false;
    bool touched = false;
    int link = -1;
    std::uint64_t contacts = 0;
    std::array<std::uint64_t, 8> statuses{};  ///< cycles by Status, since activation
    std::vector<double> efforts, thresholds;  ///< by joint
  };

  /// Cycles since activation, as the last diagnostics knew them.
  struct Diagnosed {
    std::uint64_t usable = 0, unusable = 0;
  };

  // off the real-time path
  void build_observer();
  void create_publisher();
  void on_set_payload(const SetPayload::Request& request, SetPayload::Response& response);
  [[nodiscard]] bool find_state_interfaces();
  void diagnose(diagnostic_updater::DiagnosticStatusWrapper& status);
  void warn_of_unusable_cycles(const Report& now,
                               diagnostic_updater::DiagnosticStatusWrapper& status);

  // the steps of a cycle
  void take_loads();
  void read_states();
  void write_states();
  void publish(const rclcpp::Time& time, double period);
  void fill(Report& report) const;

  std::shared_ptr<external_torque_observer::ParamListener> param_listener_;
  Params params_;
  std::mutex model_mutex_;  ///< between configuration and the service, which has another thread
  std::optional<dynamics_core::Model> model_;
  std::optional<dynamics_core::control::MomentumObserver> observer_;
  realtime_tools::RealtimeThreadSafeBox<Loads> loads_;
  rclcpp::Service<SetPayload>::SharedPtr payload_service_;
  std::vector<std::string> link_names_;

  // by joint; indices into state_interfaces_, −1: not there
  std::vector<int> position_states_, velocity_states_, effort_states_;
  std::vector<int> other_position_states_, other_velocity_states_;
  bool has_velocities_ = false, has_other_velocities_ = false;
  dynamics_core::VectorX<double> position_, velocity_, effort_, other_position_, other_velocity_;

  bool was_touched_ = false;
  std::uint64_t contacts_ = 0;
  std::array<std::uint64_t, 8> statuses_{};

  std::unique_ptr<realtime_tools::RealtimePublisher<Message>> publisher_;
  Message message_;
  double since_published_ = 0.0;
  std::unique_ptr<diagnostic_updater::Updater> diagnostics_;
  realtime_tools::RealtimeThreadSafeBox<Report> report_;
  Diagnosed diagnosed_;
};

}  // namespace realtime_dynamics
