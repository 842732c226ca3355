// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/samples.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Index;
using text::to_short_text;

/// The evenly spaced samples may be so many times those of the log.
constexpr double densest = 10.0;

/// What no motor gives, N·m, and what no sensor tells from nothing.
constexpr double largest_effort = 1e9;
constexpr double smallest_effort = 1e-9;

/// A hole in the stamps that is longer ends a stretch, s.
constexpr double longest_hole = 0.1;

[[nodiscard]] double median(std::vector<double> x) { return quantile(std::move(x), 0.5); }

// --- values --------------------------------------------------------------------------------------

/// NaN for values that are no numbers or stand alone far from the two before and after them.
long remove_wild(Eigen::Ref<VectorX<double>> x) {
  const Index n = x.size();
  std::vector<double> departures;
  VectorX<double> departure = VectorX<double>::Zero(n);
  std::vector<double> near;
  for (Index i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    near.clear();
    for (Index k = std::max<Index>(i - 2, 0); k <= std::min(i + 2, n - 1); ++k)
      if (std::isfinite(x[k])) near.push_back(x[k]);
    departure[i] = std::abs(x[i] - median(near));
    departures.push_back(departure[i]);
  }
  if (departures.empty()) return 0;
  std::vector<double> sizes;
  for (const double value : x)
    if (std::isfinite(value)) sizes.push_back(std::abs(value));
  // Noise, and where that is none, a share of the signal.
  const double allowed = 50.0 * quantile(departures, 0.95) + 0.1 * quantile(sizes, 0.95) + 1e-9;
  long removed = 0;
  for (Index i = 0; i < n; ++i) {
    if (std::isfinite(x[i]) && departure[i] <= allowed) continue;
    x[i] = std::numeric_limits<double>::quiet_NaN();
    ++removed;
  }
  return removed;
}

/// Straight lines where there are NaN; zero where there is nothing else.
void fill(const std::vector<double>& time, Eigen::Ref<VectorX<double>> x) {
  Index last = -1;
  for (Index i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) continue;
    for (Index k = last + 1; k < i; ++k) {
      const double t0 = time[static_cast<std::size_t>(std::max<Index>(last, 0))];
      const double t1 = time[static_cast<std::size_t>(i)];
      const double share = last < 0 ? 1.0 : (time[static_cast<std::size_t>(k)] - t0) / (t1 - t0);
      x[k] = last < 0 ? x[i] : x[last] + share * (x[i] - x[last]);
    }
    last = i;
  }
  for (Index k = last + 1; k < x.size(); ++k) x[k] = last < 0 ? 0.0 : x[last];
}

/// The signals with `pad` samples more before and after, on the cubics that fit the first and the
/// last `window` samples best. Accelerations go on through the ends, where a point-symmetric
/// continuation would turn them about. Needs at least four samples.
[[nodiscard]] MatrixX<double> continued(const MatrixX<double>& signals, Index pad, Index window) {
  constexpr int coefficients = 4;
  const Index n = signals.rows();
  window = std::min(window, n);
  Eigen::MatrixXd powers(window + pad, coefficients);  // of the way from the end, outside negative
  for (Index i = 0; i < window + pad; ++i) {
    const double t = static_cast<double>(i - pad) / static_cast<double>(window);
    powers.row(i) << 1.0, t, t * t, t * t * t;
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> fit(powers.bottomRows(window));
  MatrixX<double> out(n + 2 * pad, signals.cols());
  out.middleRows(pad, n) = signals;
  const auto continue_start = [&](auto&& x) {
    for (Index column = 0; column < x.cols(); ++column) {
      const Eigen::VectorXd inside = x.col(column).segment(pad, window);
      x.col(column).head(pad) = powers.topRows(pad) * fit.solve(inside);
    }
  };
  continue_start(out);
  continue_start(out.colwise().reverse());
  return out;
}

// --- stamps --------------------------------------------------------------------------------------

/// Stamps of one sample after another, evenly spaced between gaps.
[[nodiscard]] std::vector<double> even(const std::vector<double>& stamps,
                                       const std::vector<std::size_t>& ends) {
  std::vector<double> out(stamps.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const double n = static_cast<double>(end - begin - 1);
    const double h = n > 0 ? (stamps[end - 1] - stamps[begin]) / n : 0.0;
    for (std::size_t i = begin; i < end; ++i)
      out[i] = stamps[begin] + h * static_cast<double>(i - begin);
    begin = end;
  }
  return out;
}

/// Rows that say something new: where the sensor was read more slowly than the log was written, the
/// last value was repeated. A value that stays for longer is a joint that stands still.
[[nodiscard]] std::vector<std::size_t> fresh(const MatrixX<double>& x, std::size_t begin,
                                             std::size_t end) {
  constexpr std::size_t longest_run = 4;
  std::vector<std::size_t> rows;
  for (std::size_t i = begin; i < end;) {
    std::size_t next = i + 1;
    while (next < end && x.row(static_cast<Index>(next)) == x.row(static_cast<Index>(i))) ++next;
    rows.push_back(i);
    if (next - i > longest_run)
      for (std::size_t k = i + 1; k < next; ++k) rows.push_back(k);
    i = next;
  }
  return rows;
}

/// The median of the steps between stamps; without those inside bursts, where most steps are.
[[nodiscard]] double usual_step(const std::vector<double>& stamps) {
  std::vector<double> steps;
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    steps.push_back(stamps[i] - stamps[i - 1]);
    if (steps.back() > longest_hole) continue;
    sum += steps.back();
    count += 1.0;
  }
  const double usual = median(steps);
  const double tiny = count > 0.0 ? 0.1 * sum / count : 0.0;
  if (usual > tiny) return usual;
  steps.erase(std::remove_if(steps.begin(), steps.end(), [&](double h) { return h < tiny; }),
              steps.end());
  return median(steps);
}

[[nodiscard]] MatrixX<double> at_grid(const std::vector<double>& clock, const MatrixX<double>& x,
                                      std::size_t begin, std::size_t end,
                                      const std::vector<double>& grid) {
  const std::vector<std::size_t> rows = fresh(x, begin, end);
  std::vector<double> t;
  MatrixX<double> known(static_cast<Index>(rows.size()), x.cols());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    t.push_back(clock[rows[k]]);
    known.row(static_cast<Index>(k)) = x.row(static_cast<Index>(rows[k]));
  }
  return interpolated(t, known, grid);
}

[[nodiscard]] std::vector<double> grid_of(double first, double last, double period) {
  const auto n = static_cast<std::size_t>(std::floor((last - first) / period + 1e-6)) + 1;
  std::vector<double> t(n);
  for (std::size_t k = 0; k < n; ++k) t[k] = first + period * static_cast<double>(k);
  return t;
}

/// How rough the positions look on this clock: smooth motion looks rough on a wrong one.
[[nodiscard]] double roughness(const std::vector<double>& clock, const MatrixX<double>& q,
                               const std::vector<std::size_t>& ends, double period) {
  double sum = 0.0;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::vector<double> grid = grid_of(clock[begin], clock[end - 1], period);
    const MatrixX<double> x = at_grid(clock, q, begin, end, grid);
    const Index n = x.rows();
    if (n > 3)
      sum += (x.bottomRows(n - 3) - 3.0 * x.middleRows(2, n - 3) + 3.0 * x.middleRows(1, n - 3) -
              x.topRows(n - 3))
                 .squaredNorm();
    begin = end;
  }
  return std::sqrt(sum);
}

/// Cleans one log, step by step.
class Cleaner {
 public:
  Cleaner(const Log& log, const Model& model, double rate) : log_(log), model_(model), rate_(rate) {
    out_.source = log.source;
    out_.notes = log.notes;
  }

  [[nodiscard]] Recording run() {
    take_columns();
    take_stamps();
    remove_wild_values();
    choose_clock();
    cut();
    spread_clock();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy) const {
    throw LogError(log_.source, problem, remedy);
  }
  void note(const std::string& text) { out_.notes.push_back(text); }

  void take_columns() {
    const Index rows = log_.samples();
    q_.resize(rows, model_.nv);
    tau_ = MatrixX<double>::Zero(rows, model_.nv);
    for (const JointInfo& joint : model_.joints) {
      if (joint.nv != 1)
        refuse("joint '" + joint.name + "' has " + std::to_string(joint.nv) + " degrees of freedom",
               "only joints with one can be identified");
      const auto it = std::find(log_.joints.begin(), log_.joints.end(), joint.name);
      if (it == log_.joints.end())
        refuse("has no column q_" + joint.name, "add it, or leave the joint out with --joints");
      const auto column = static_cast<Index>(it - log_.joints.begin());
      q_.col(joint.v) = log_.q.col(column);
      const bool has = log_.tau.col(column).array().isFinite().any();
      out_.has_effort.push_back(has);
      out_.current.push_back(log_.current[static_cast<std::size_t>(column)]);
      if (has) tau_.col(joint.v) = log_.tau.col(column);
      if (!log_.q.col(column).array().isFinite().any())
        refuse("column q_" + joint.name + " holds no number", "check how it was recorded");
    }
  }

  /// The rows in the order of time, and their stamps.
  void take_stamps() {
    const auto n = static_cast<std::size_t>(log_.samples());
    if (log_.time.empty() && !(rate_ > 0.0))
      refuse("it has no column time", "say how many samples a second it has: --rate HZ");
    if (log_.time.empty()) {
      for (std::size_t i = 0; i < n; ++i) {
        rows_.push_back(i);
        stamps_.push_back(static_cast<double>(i) / rate_);
      }
      return;
    }
    for (std::size_t i = 0; i < n; ++i)
      if (std::isfinite(log_.time[i])) rows_.push_back(i);
    if (rows_.size() < n)
      note(std::to_string(n - rows_.size()) + " samples without a stamp were left out");
    const auto earlier = [&](std::size_t a, std::size_t b) { return log_.time[a] < log_.time[b]; };
    if (!std::is_sorted(rows_.begin(), rows_.end(), earlier)) {
      note("the stamps are not in order; the samples were sorted");
      std::stable_sort(rows_.begin(), rows_.end(), earlier);
    }
    const std::size_t before = rows_.size();
    rows_.erase(
        std::unique(rows_.begin(), rows_.end(),
                    [&](std::size_t a, std::size_t b) { return log_.time[a] == log_.time[b]; }),
        rows_.end());
    if (rows_.size() < before)
      note(std::to_string(before - rows_.size()) +
           " samples with the stamp of another were left out");
    for (const std::size_t i : rows_) stamps_.push_back(log_.time[i]);
  }

  void remove_wild_values() {
    if (rows_.size() < 10)
      refuse("has " + std::to_string(rows_.size()) + " samples", "record at least some seconds");
    out_.period = usual_step(stamps_);
    if (out_.period > 1.0) {
      for (const double unit : {1e-3, 1e-6, 1e-9})
        if (out_.period * unit < 1.0)
          refuse("its stamps are " + to_short_text(out_.period) + " apart",
                 "write the time in seconds (it looks like " +
                     std::string(unit == 1e-3   ? "milli"
                                 : unit == 1e-6 ? "micro"
                                                : "nano") +
                     "seconds)");
    }
    long wild = 0;
    long q_wild = 0;
    const auto clean = [&](MatrixX<double>& x, bool used, int j) {
      VectorX<double> column(static_cast<Index>(rows_.size()));
      for (std::size_t k = 0; k < rows_.size(); ++k)
        column[static_cast<Index>(k)] = x(static_cast<Index>(rows_[k]), j);
      const long removed = used ? remove_wild(column) : 0;
      fill(stamps_, column);
      for (std::size_t k = 0; k < rows_.size(); ++k)
        x(static_cast<Index>(rows_[k]), j) = column[static_cast<Index>(k)];
      return removed;
    };
    for (int j = 0; j < model_.nv; ++j) {
      const long removed = clean(q_, true, j);
      q_wild += removed;
      wild += removed + clean(tau_, out_.has_effort[static_cast<std::size_t>(j)], j);
    }
    if (wild > 0)
      note(std::to_string(wild) + " wild values or none at all (" + std::to_string(q_wild) +
           " of them positions) were replaced by their neighbours'");
    const long all = static_cast<long>(rows_.size()) * 2 * model_.nv;
    if (wild > all / 2) refuse("most of its values are no numbers", "check how it was recorded");
  }

  void choose_clock() {
    for (std::size_t i = 1; i < stamps_.size(); ++i)
      if (stamps_[i] - stamps_[i - 1] > std::max(longest_hole, 5.0 * out_.period))
        ends_.push_back(i);
    ends_.push_back(stamps_.size());
    if (ends_.size() > 1)
      note(std::to_string(ends_.size() - 1) +
           " gaps in the stamps; the parts between are taken by "
           "themselves");
    check_size();
    clock_ = stamps_;
    double jitter = 0.0;
    std::size_t begin = 0;
    const std::vector<double> uniform = even(stamps_, ends_);
    for (const std::size_t end : ends_) {
      for (std::size_t i = begin; i + 1 < end; ++i)
        jitter = std::max(jitter, std::abs(stamps_[i + 1] - stamps_[i] - out_.period));
      begin = end;
    }
    if (jitter < 1e-3 * out_.period) return;
    MatrixX<double> q(static_cast<Index>(rows_.size()), q_.cols());
    for (std::size_t k = 0; k < rows_.size(); ++k)
      q.row(static_cast<Index>(k)) = q_.row(static_cast<Index>(rows_[k]));
    const double stamped = roughness(stamps_, q, ends_, out_.period);
    const double spaced = roughness(uniform, q, ends_, out_.period);
    const bool is_even = spaced < 0.8 * stamped;
    if (is_even) clock_ = uniform;
    note("the stamps jitter by up to " + to_short_text(1e3 * jitter) + " ms about " +
         to_short_text(1e3 * out_.period) + " ms; the motion is smoother " +
         (is_even ? "evenly spaced, so they were not used" : "at the stamps, so they were used"));
  }

  /// Bursts of samples would be spread over a grid as fine as their steps.
  void check_size() const {
    double steps = 0.0;
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      steps += (stamps_[end - 1] - stamps_[begin]) / out_.period;
      begin = end;
    }
    if (!(steps <= densest * static_cast<double>(stamps_.size())))
      refuse("its stamps come in bursts, mostly " + to_short_text(out_.period) +
                 " s apart, and leave most of the time without samples",
             "record at an even rate, or give --rate in place of the column time");
  }

  void cut() {
    MatrixX<double> q(static_cast<Index>(rows_.size()), q_.cols());
    MatrixX<double> tau = q;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      q.row(static_cast<Index>(k)) = q_.row(static_cast<Index>(rows_[k]));
      tau.row(static_cast<Index>(k)) = tau_.row(static_cast<Index>(rows_[k]));
    }
    std::size_t begin = 0;
    std::size_t repeated = 0;
    for (const std::size_t end : ends_) {
      const std::vector<double> grid = grid_of(clock_[begin], clock_[end - 1], out_.period);
      Stretch part;
      part.start = grid.front();
      part.q = at_grid(clock_, q, begin, end, grid);
      part.tau = at_grid(clock_, tau, begin, end, grid);
      repeated += end - begin - fresh(q, begin, end).size();
      out_.stretches.push_back(std::move(part));
      begin = end;
    }
    if (repeated > 0)
      note(std::to_string(repeated) + " of " + std::to_string(rows_.size()) +
           " positions repeat the one before in passing and were bridged");
  }

  /// The clock and the stretch of every row of the log, also of those left out.
  void spread_clock() {
    const auto n = static_cast<std::size_t>(log_.samples());
    std::vector<int> place(n, -1);
    for (std::size_t k = 0; k < rows_.size(); ++k) place[rows_[k]] = static_cast<int>(k);
    std::size_t last = 0;
    out_.tau = tau_;
    for (std::size_t i = 0; i < n; ++i) {
      if (place[i] >= 0) {
        last = static_cast<std::size_t>(place[i]);
      } else {
        out_.tau.row(static_cast<Index>(i)) = tau_.row(static_cast<Index>(rows_[last]));
      }
      out_.clock.push_back(clock_[last]);
      const auto after = std::upper_bound(ends_.begin(), ends_.end(), last);
      out_.stretch.push_back(static_cast<int>(after - ends_.begin()));
    }
  }

  const Log& log_;
  const Model& model_;
  double rate_;
  Recording out_;
  MatrixX<double> q_, tau_;
  std::vector<std::size_t> rows_;  ///< of the log, in the order of time
  std::vector<double> stamps_;     ///< by place in rows_, as the clock_
  std::vector<double> clock_;
  std::vector<std::size_t> ends_;  ///< of the stretches, places in rows_
};

}  // namespace

std::vector<std::string> joints_of(const Log& log, const RobotDescription& robot) {
  std::vector<std::string> joints, known;
  for (const JointDescription& joint : robot.joints) {
    if (joint.type == JointType::fixed || joint.mimic) continue;
    known.push_back(joint.name);
    if (std::find(log.joints.begin(), log.joints.end(), joint.name) != log.joints.end())
      joints.push_back(joint.name);
  }
  if (joints.empty())
    throw LogError(log.source,
                   "none of its joints (" + text::quoted_list(log.joints, ", ", 8) +
                       ") is a moving joint of the robot (" + text::quoted_list(known, ", ", 8) +
                       ")",
                   "is it the log of another robot? Name the columns after the URDF's joints");
  return joints;
}

void check_efforts(const Model& model, const std::vector<Recording>& recordings,
                   const std::vector<bool>& used) {
  bool says_something = false;
  for (const Recording& recording : recordings)
    for (const Stretch& s : recording.stretches)
      for (std::size_t j = 0; j < used.size(); ++j) {
        if (!used[j] || !recording.has_effort[j]) continue;
        const auto column = s.tau.col(static_cast<Index>(j));
        const double low = column.minCoeff();
        const double high = column.maxCoeff();
        const double most = std::max(std::abs(low), std::abs(high));
        if (!(most < largest_effort))
          throw LogError(
              recording.source,
              "the efforts of joint '" + model.joints[j].name + "' reach " + to_short_text(most),
              "check how they were recorded; they have to be in N m, N or A");
        says_something = says_something || high - low > smallest_effort;
      }
  if (!says_something)
    throw LogError(recordings.front().source, "its efforts are all zero or never change",
                   "record the robot while its drives are on, and check what they report");
}

Recording cleaned(const Log& log, const Model& model, double rate) {
  return Cleaner(log, model, rate).run();
}

Stretch differentiated(const Stretch& raw, double period, double cutoff, int every) {
  const LowPass low_pass(cutoff, 1.0 / period);
  // Over three of its settling times the filter forgets what was beyond the ends.
  const Index pad = raw.samples() < 4 ? 0 : 3 * low_pass.settling();
  MatrixX<double> q = pad > 0 ? continued(raw.q, pad, std::max<Index>(pad, 8)) : raw.q;
  MatrixX<double> tau = raw.tau;
  low_pass.apply(q);
  low_pass.apply(tau);
  MatrixX<double> v = derivative(q, period);
  MatrixX<double> a = derivative(v, period);
  for (MatrixX<double>* x : {&q, &v, &a}) *x = x->middleRows(pad, raw.samples()).eval();
  const Index n = (q.rows() + every - 1) / every;
  const auto thinned = [&](const MatrixX<double>& x) {
    MatrixX<double> out(n, x.cols());
    for (Index k = 0; k < n; ++k) out.row(k) = x.row(k * every);
    return out;
  };
  return {raw.start, thinned(q), thinned(v), thinned(a), thinned(tau)};
}

double bandwidth(const Recording& recording) {
  constexpr double widest = 50.0;
  constexpr double share_of_energy = 0.95;
  constexpr double pi = 3.14159265358979323846;
  const double rate = 1.0 / recording.period;
  const int every = std::max(1, static_cast<int>(rate / (4.0 * widest)));
  const double period = recording.period * every;
  double highest = 0.0;
  for (const Stretch& raw : recording.stretches) {
    MatrixX<double> v =
        differentiated(raw, recording.period, std::min(0.2 * rate, widest), every).v;
    const auto n = static_cast<double>(v.rows());
    v.rowwise() -= v.colwise().mean().eval();
    for (Index i = 0; i < v.rows(); ++i) {  // without steps at the ends
      const double from_end = static_cast<double>(std::min(i, v.rows() - 1 - i)) / (0.05 * n);
      if (from_end < 1.0) v.row(i) *= 0.5 - 0.5 * std::cos(pi * from_end);
    }
    double left = share_of_energy * n * v.squaredNorm() / 2.0;  // Parseval
    for (int k = 1; k < v.rows() / 2 && left > 0.0; ++k) {
      const double step = 2.0 * pi * k / n;
      VectorX<double> re = VectorX<double>::Zero(v.cols());
      VectorX<double> im = re;
      for (Index i = 0; i < v.rows(); ++i) {
        re += std::cos(step * static_cast<double>(i)) * v.row(i).transpose();
        im += std::sin(step * static_cast<double>(i)) * v.row(i).transpose();
      }
      left -= re.squaredNorm() + im.squaredNorm();
      if (left <= 0.0) highest = std::max(highest, k / (n * period));
    }
  }
  return highest > 0.0 ? highest : widest;
}

VectorX<double> rest_speed(const std::vector<Recording>& recordings) {
  const Index nv = recordings.front().stretches.front().q.cols();
  VectorX<double> speed(nv);
  for (Index j = 0; j < nv; ++j) {
    std::vector<double> speeds;
    for (const Recording& recording : recordings)
      for (const Stretch& raw : recording.stretches) {
        const Stretch s = differentiated(raw, recording.period, 10.0, 1);
        for (Index i = 0; i < s.samples(); ++i) speeds.push_back(std::abs(s.v(i, j)));
      }
    speed[j] = 0.01 * quantile(std::move(speeds), 0.99);
  }
  return speed;
}

}  // namespace dynamics_core::identification
