// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "dynamics_core/dynamics.hpp"
#include "page.hpp"
#include "track.hpp"

namespace dynamics_core::tools {

namespace {

using Eigen::Index;
using MatrixXd = MatrixX<double>;
using VectorXd = VectorX<double>;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr long plot_points = 400;
constexpr long figure_frames = 160;
constexpr long matrix_frames = 80;

/// Six digits are more than a plot shows.
[[nodiscard]] Json short_number(double x) {
  if (!std::isfinite(x)) return nullptr;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", x);
  return std::strtod(text.data(), nullptr);
}

template <class Vector>
[[nodiscard]] Json short_list(const Vector& x) {
  Json json = Json::array();
  for (Index i = 0; i < x.size(); ++i) json.push_back(short_number(x[i]));
  return json;
}

/// So many cycles, evenly spread, first and last among them.
[[nodiscard]] std::vector<long> spread(long cycles, long wanted) {
  std::vector<long> k;
  const long n = std::min(cycles, wanted);
  for (long i = 0; i < n; ++i) k.push_back(n == 1 ? 0 : i * (cycles - 1) / (n - 1));
  return k;
}

/// The reference of every cycle, a column each.
[[nodiscard]] MatrixXd reference(const Experiment& x) {
  MatrixXd q(x.model.nq, x.cycles);
  Desired at{VectorXd::Zero(x.model.nq), VectorXd::Zero(x.model.nv), VectorXd::Zero(x.model.nv)};
  for (long k = 0; k < x.cycles; ++k) {
    if (x.motion.path(static_cast<double>(k) * x.period, at) != Status::ok) break;
    q.col(k) = at.q;
  }
  return q;
}

/// A list for each joint.
[[nodiscard]] Json traces(const MatrixXd& x, const std::vector<long>& cycles) {
  Json json = Json::array();
  for (Index j = 0; j < x.rows(); ++j) {
    Json trace = Json::array();
    for (const long k : cycles) trace.push_back(short_number(x(j, k)));
    json.push_back(std::move(trace));
  }
  return json;
}

/// |e| over all joints: the largest between two points, so that no peak gets lost.
[[nodiscard]] Json error_trace(const MatrixXd& q_d, const MatrixXd& q,
                               const std::vector<long>& cycles) {
  Json json = Json::array();
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    const long end = i + 1 < cycles.size() ? cycles[i + 1] : cycles[i] + 1;
    double worst = 0.0;
    for (long k = cycles[i]; k < std::max(end, cycles[i] + 1); ++k)
      worst = std::max(worst, (q_d.col(k) - q.col(k)).norm());
    json.push_back(short_number(worst));
  }
  return json;
}

/// Counts of the compute times by bins of equal width on a logarithmic scale.
struct Histogram {
  static constexpr int bins = 60;
  static constexpr double lowest = 0.1, highest = 1e4;  // µs
  [[nodiscard]] static Json edges() {
    Json json = Json::array();
    for (int i = 0; i <= bins; ++i)
      json.push_back(
          short_number(lowest * std::pow(highest / lowest, static_cast<double>(i) / bins)));
    return json;
  }
  [[nodiscard]] static Json count(const std::vector<std::int64_t>& nanoseconds) {
    std::array<long, bins> counts{};
    for (const std::int64_t ns : nanoseconds) {
      const double us = std::max(1e-3 * static_cast<double>(ns), 1e-3);
      const double place = bins * std::log(us / lowest) / std::log(highest / lowest);
      ++counts[static_cast<std::size_t>(std::clamp(place, 0.0, bins - 1.0))];
    }
    return counts;
  }
};

/// Where the links are, for a figure of lines between their origins.
class Skeleton {
 public:
  Skeleton(const Model& model, const RobotDescription& tree) : robot_(model) {
    for (const JointDescription& joint : tree.joints) {
      const int parent = model.find_link(joint.parent);
      const int child = model.find_link(joint.child);
      if (parent >= 0 && child >= 0) edges_.push_back({point(parent), point(child)});
    }
  }

  [[nodiscard]] Json edges() const { return edges_; }

  /// x, y, z of every point, for each of the cycles.
  [[nodiscard]] Json frames(const MatrixXd& q, const std::vector<long>& cycles) {
    Json json = Json::array();
    for (const long k : cycles) {
      Json frame = Json::array();
      if (robot_.kinematics().update(q.col(k)) != Status::ok) break;
      for (const int link : links_) {
        Pose<double> X = Pose<double>::identity();
        if (robot_.kinematics().pose(link, X) != Status::ok) break;
        for (const double x : X.p) frame.push_back(std::round(1e4 * x) / 1e4);
      }
      json.push_back(std::move(frame));
    }
    return json;
  }

 private:
  [[nodiscard]] int point(int link) {
    const auto it = std::find(links_.begin(), links_.end(), link);
    if (it != links_.end()) return static_cast<int>(it - links_.begin());
    links_.push_back(link);
    return static_cast<int>(links_.size()) - 1;
  }

  Dynamics<double> robot_;
  std::vector<int> links_;
  std::vector<std::array<int, 2>> edges_;
};

[[nodiscard]] Json times(const Experiment& x, const std::vector<long>& cycles) {
  Json json = Json::array();
  for (const long k : cycles) json.push_back(short_number(static_cast<double>(k) * x.period));
  return json;
}

[[nodiscard]] Json mass_matrices(const Experiment& x, const MatrixXd& q_d) {
  const std::vector<long> cycles = spread(x.cycles, matrix_frames);
  Dynamics<double> robot(x.model);
  for (const CarriedPayload& on : x.known_payloads) (void)robot.set_payload(on.link, on.payload);
  MatrixXd M(x.model.nv, x.model.nv);
  Json matrices = Json::array();
  for (const long k : cycles) {
    if (robot.mass_matrix(q_d.col(k), M) != Status::ok) break;
    matrices.push_back(short_list(Eigen::Map<const VectorXd>(M.data(), M.size())));
  }
  return {{"t", times(x, cycles)}, {"M", std::move(matrices)}};
}

[[nodiscard]] Json page_data(const Experiment& x, const std::vector<Outcome>& outcomes,
                             const RobotDescription& tree) {
  Json data = summary(x, outcomes);
  const MatrixXd q_d = reference(x);
  const std::vector<long> cycles = spread(x.cycles, plot_points);
  const std::vector<long> frames = spread(x.cycles, figure_frames);
  Skeleton skeleton(x.model, tree);
  data["t"] = times(x, cycles);
  data["q_d"] = traces(q_d, cycles);
  data["effort_limits"] = Json::array();
  for (const JointInfo& joint : x.model.joints)
    data["effort_limits"].push_back(short_number(joint.limits.effort));
  data["histogram_edges"] = Histogram::edges();
  data["figure"] = {{"edges", skeleton.edges()},
                    {"t", times(x, frames)},
                    {"desired", skeleton.frames(q_d, frames)}};
  data["mass_matrix"] = mass_matrices(x, q_d);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& o = outcomes[i];
    Json& law = data["laws"][i];
    law["histogram"] = Histogram::count(o.compute);
    if (!o.failure.empty()) continue;  // no traces of a run that broke off
    law["q"] = traces(o.q, cycles);
    law["tau"] = traces(o.tau, cycles);
    law["error"] = error_trace(q_d, o.q, cycles);
    law["figure"] = skeleton.frames(o.q, frames);
  }
  return data;
}

}  // namespace

std::string write_report(const std::string& directory, const Experiment& experiment,
                         const std::vector<Outcome>& outcomes, const RobotDescription& tree,
                         const std::string& differences) {
  std::error_code error;
  fs::create_directories(directory, error);
  const fs::path folder(directory);
  const std::string data = (folder / "track.json").string();
  std::string page = (folder / "index.html").string();
  Json json = page_data(experiment, outcomes, tree);
  json["differences"] = differences;
  std::ofstream out(data);
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) throw std::runtime_error(data + ": cannot be written");
  draw_page("report.py", data, page);
  return page;
}

}  // namespace dynamics_core::tools
