// SPDX-License-Identifier: Apache-2.0
/// `dynamics validate`: what an identified robot predicts for another log, and what was measured.

#include <cmath>
#include <iostream>
#include <sstream>

#include "bag_log.hpp"
#include "dynamics_core/identification/robot_model.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "identified.hpp"
#include "output.hpp"

namespace dynamics_core::tools {

namespace {

using namespace identification;
using text::to_short_text;

struct ValidateCommand {
  RobotOptions robot;
  LogOptions log;
  std::string file;
  std::string directory;
  std::string csv;
  double cutoff = 0.0;
};

[[nodiscard]] std::string csv_of(const Log& log, const Recording& recording, const Model& model,
                                 const MatrixX<double>& tau, const MatrixX<double>& prediction) {
  std::ostringstream out;
  out << "time";
  for (const JointInfo& joint : model.joints) out << ",measured_" << joint.name;
  for (const JointInfo& joint : model.joints) out << ",predicted_" << joint.name;
  out << '\n';
  for (Eigen::Index i = 0; i < tau.rows(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const bool stamped = k < log.time.size() && std::isfinite(log.time[k]);
    out << text::to_text(stamped ? log.time[k] : recording.clock[k]);
    for (Eigen::Index j = 0; j < tau.cols(); ++j) out << ',' << to_short_text(tau(i, j));
    for (Eigen::Index j = 0; j < tau.cols(); ++j) out << ',' << to_short_text(prediction(i, j));
    out << '\n';
  }
  return out.str();
}

int validate_command(const ValidateCommand& options) {
  if (!options.csv.empty()) check_writable(options.csv);
  const Identified identified = read_identified(options.directory);
  const Log log = read_log_or_bag(options.file);
  check_joints(identified, log);
  const Model model = load_identified(identified, options.robot, identified.urdf);
  const Model nominal = load_identified(identified, options.robot, options.robot.file);
  Drives drives = drives_of(identified, model);
  for (const std::string& text : options.log.gains) {
    const auto equals = text.rfind('=');
    const int joint =
        equals == text.npos ? -1 : model.find_joint(text::trimmed(text.substr(0, equals)));
    if (joint < 0) throw UsageError("--gain '" + text + "': write it as joint=value");
    Drive& drive = drives.joints[static_cast<std::size_t>(joint)];
    if (drive.factor == 0.0) continue;
    // The sign that was found stays.
    const double gain = parse_number(text.substr(equals + 1), "--gain '" + text + "'");
    if (std::abs(std::abs(gain) - std::abs(drive.factor)) > 1e-9 * std::abs(gain))
      drive.factor = gain;
  }
  const Recording recording = cleaned(log, model, options.log.rate);
  std::vector<bool> used;
  for (std::size_t j = 0; j < drives.joints.size(); ++j)
    used.push_back(drives.joints[j].factor != 0.0 && recording.has_effort[j]);
  check_efforts(model, {recording}, used);
  for (const std::string& note : recording.notes) std::cout << "- " << note << '\n';
  const double cutoff = options.cutoff > 0.0 ? options.cutoff : drives.cutoff;
  const MatrixX<double> prediction = predicted(recording, model, drives);
  Drives plain = nominal_drives(nominal);
  plain.cutoff = drives.cutoff;
  plain.gravity = drives.gravity;
  for (std::size_t j = 0; j < plain.joints.size(); ++j) {
    plain.joints[j].factor = drives.joints[j].factor;
    plain.joints[j].delay = drives.joints[j].delay;
  }
  const Score identified_score = score(recording, drives, prediction, cutoff);
  const Score nominal_score = score(recording, plain, predicted(recording, nominal, plain), cutoff);

  std::cout << "\nError below " << to_short_text(cutoff) << " Hz in "
            << to_short_text(identified_score.seconds)
            << " s of motion, RMS over RMS of the effort\n";
  std::vector<Row> rows = {{"joint", "nominal %", "identified %", "error N m", "effort N m"}};
  for (int j = 0; j < model.nv; ++j) {
    const double signal = identified_score.signal[j];
    rows.push_back({model.joints[static_cast<std::size_t>(j)].name,
                    percent(nominal_score.error[j] / signal),
                    percent(identified_score.error[j] / signal),
                    std::isfinite(signal) ? to_short_text(identified_score.error[j]) : "-",
                    std::isfinite(signal) ? to_short_text(signal) : "-"});
  }
  rows.push_back(
      {"all joints", percent(nominal_score.overall), percent(identified_score.overall), "", ""});
  print_table(std::cout, rows);
  if (!options.csv.empty())
    write_files(
        {{options.csv, csv_of(log, recording, model, measured(recording, drives), prediction)}});
  return 0;
}

}  // namespace

Subcommand add_validate(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "validate", "Compare what an identified robot predicts with another log");
  auto options = std::make_shared<ValidateCommand>();
  add_robot_options(*app, options->robot);
  app->add_option("LOG", options->file, "CSV or rosbag2 bag, as for identify")->required();
  app->add_option("--model", options->directory, "Folder that identify wrote")
      ->type_name("DIR")
      ->required();
  app->add_option("--csv", options->csv, "Measured and predicted efforts of every sample, N m")
      ->type_name("FILE");
  app->add_option("--cutoff", options->cutoff,
                  "Below which efforts are compared, Hz (default: the identification's)")
      ->check(cutoff_range());
  add_log_options(*app, options->log);
  return {app, [options] { return validate_command(*options); }};
}

}  // namespace dynamics_core::tools
