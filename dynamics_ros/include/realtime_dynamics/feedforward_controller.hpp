// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The control laws of dynamics_core as a chainable controller of ros2_control. The user page is
/// dynamics_ros/doc/feedforward_controller.md.

#include <array>
#include <atomic>
#include <chrono>
#include <control_msgs/msg/joint_trajectory_controller_state.hpp>
#include <controller_interface/chainable_controller_interface.hpp>
#include <cstdint>
#include <diagnostic_updater/diagnostic_updater.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <realtime_tools/realtime_publisher.hpp>
#include <realtime_tools/realtime_thread_safe_box.hpp>
#include <string>
#include <trajectory_msgs/msg/joint_trajectory_point.hpp>
#include <vector>

#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/control/duration_histogram.hpp"
#include "dynamics_core/control/load_estimator.hpp"
#include "dynamics_core/model.hpp"
#include "realtime_dynamics/feedforward_controller_parameters.hpp"
#include "realtime_dynamics/srv/set_payload.hpp"
#include "realtime_dynamics/srv/weigh_load.hpp"

namespace realtime_dynamics {

class FeedforwardController : public controller_interface::ChainableControllerInterface {
 public:
  using CallbackReturn = controller_interface::CallbackReturn;
  using Params = feedforward_controller::Params;
  using SetPayload = srv::SetPayload;
  using WeighLoad = srv::WeighLoad;
  using StateMsg = control_msgs::msg::JointTrajectoryControllerState;
  using ReferenceMsg = trajectory_msgs::msg::JointTrajectoryPoint;

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
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list()
      override;

 private:
  using Clock = std::chrono::steady_clock;

  /// What other threads want of the control loop. Filled under a lock that the loop only tries.
  struct Changes {
    struct Load {
      dynamics_core::Payload<double> payload{};
      double transition_time = 0.0;
      bool fresh = false;
    };
    std::vector<dynamics_core::control::Gains> gains;  ///< by joint
    Eigen::Vector3d gravity = Eigen::Vector3d::Zero();
    bool fresh_parameters = false;
    std::vector<Load> loads;  ///< by link
    bool fresh_load = false;
  };

  /// The last message on ~/reference; each part has a number for each joint, or none.
  struct TopicReference {
    std::vector<double> position, velocity, acceleration;
    bool fresh = false;
  };

  /// What the control loop tells the diagnostics.
  struct Report {
    dynamics_core::control::ControllerState state =
        dynamics_core::control::ControllerState::inactive;
    dynamics_core::control::Event fault_cause = dynamics_core::control::Event::bad_result;
    dynamics_core::control::EventCounts events;
    std::vector<dynamics_core::control::LimitReport> limits;  ///< by joint
    std::uint64_t failed_writes = 0;
    bool reacting = false;
  };

  // off the real-time path
  void build_controller();
  void create_interfaces();
  void take_parameters(const Params& params);
  [[nodiscard]] rcl_interfaces::msg::SetParametersResult check_parameters(
      const std::vector<rclcpp::Parameter>& parameters) const;
  void on_reference(const ReferenceMsg& message);
  void on_set_payload(const SetPayload::Request& request, SetPayload::Response& response);
  void on_weigh_load(const WeighLoad::Request& request, WeighLoad::Response& response);
  void start_weighing(const std::string& link);
  void stop_weighing(const WeighLoad::Request& request, WeighLoad::Response& response);
  /// Checks the load, and hands it to the control loop. Returns the link's index.
  int carry(const std::string& link, const dynamics_core::Payload<double>& load,
            double transition_time);
  void diagnose(diagnostic_updater::DiagnosticStatusWrapper& status);
  [[nodiscard]] std::string problem_of(const ReferenceMsg& message);
  [[nodiscard]] bool find_state_interfaces();
  [[nodiscard]] std::vector<std::string> command_interface_types() const;

  // the steps of a cycle
  void take_changes();
  void read_states();
  void read_references();
  void weigh(double period);
  void write_commands();
  void write_references(bool holding);
  void publish_state(const rclcpp::Time& time, double period);
  void fill(Report& report) const;

  std::shared_ptr<feedforward_controller::ParamListener> param_listener_;
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr parameter_check_;
  Params params_;  ///< as they were when it was loaded; what may change since is taken elsewhere

  std::mutex model_mutex_;  ///< between configuration and the callbacks, which have other threads
  std::optional<dynamics_core::Model> model_;
  std::optional<dynamics_core::control::Controller> controller_;
  realtime_tools::RealtimeThreadSafeBox<Changes> changes_;

  // by joint; indices into state_interfaces_, −1: not there
  std::vector<int> position_states_, velocity_states_, effort_states_, other_states_;
  int contact_state_ = -1;  ///< index as well
  bool has_velocities_ = false;
  std::atomic<bool> has_efforts_{false};
  bool touched_ = false;
  dynamics_core::VectorX<double> position_, velocity_, effort_, others_;
  dynamics_core::VectorX<double> reference_position_, reference_velocity_, reference_acceleration_;
  bool fresh_reference_ = false;     ///< of the topic, in this cycle
  std::array<bool, 3> topic_has_{};  ///< which parts the last message on the topic gave
  Clock::time_point last_cycle_;     ///< to tell a restart from a start

  rclcpp::Subscription<ReferenceMsg>::SharedPtr reference_subscription_;
  realtime_tools::RealtimeThreadSafeBox<TopicReference> topic_reference_;
  rclcpp::Service<SetPayload>::SharedPtr payload_service_;

  rclcpp::Service<WeighLoad>::SharedPtr weigh_service_;
  std::vector<dynamics_core::Payload<double>> carried_;  ///< by link, under model_mutex_
  std::mutex scales_mutex_;                              ///< the control loop only tries it
  std::unique_ptr<dynamics_core::control::LoadEstimator> scales_;
  double since_weighed_ = 0.0;  ///< s
  bool weighs_anew_ = false;    ///< the robot has moved unseen: the scales' filters start anew

  std::unique_ptr<realtime_tools::RealtimePublisher<StateMsg>> state_publisher_;
  StateMsg state_message_;
  double since_published_ = 0.0;

  std::unique_ptr<diagnostic_updater::Updater> diagnostics_;
  realtime_tools::RealtimeThreadSafeBox<Report> report_;
  dynamics_core::control::DurationHistogram compute_times_;
  std::uint64_t failed_writes_ = 0;
  std::uint64_t limited_cycles_reported_ = 0;  ///< by the last diagnostics
};

}  // namespace realtime_dynamics
