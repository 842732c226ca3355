// SPDX-License-Identifier: Apache-2.0
/// `dynamics identify`: from logs of a robot to the model that is true.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include "bag_log.hpp"
#include "dynamics_core/identification/identify.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/identification/weigh.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "identified.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace dynamics_core::tools {

namespace {

using namespace identification;
using text::to_short_text;

constexpr int nothing_better = 3;

struct IdentifyCommand {
  RobotOptions robot;
  LogOptions log;
  std::vector<std::string> logs;
  std::vector<std::string> validation;
  std::vector<std::string> couplings;
  std::string directory = "identified";
  double cutoff = 0.0;
  bool no_stribeck = false;
  std::string weigh;
  std::string model;
};

[[nodiscard]] EffortContent content_of(const std::string& word) {
  if (word == "auto") return EffortContent::find_out;
  if (word == "whole") return EffortContent::whole;
  return EffortContent::without_gravity;
}

[[nodiscard]] int dof_of(const Model& model, const std::string& joint, const std::string& option) {
  const int index = model.find_joint(joint);
  if (index < 0)
    throw UsageError(option + ": there is no joint '" + joint + "' in the log and the robot");
  return model.joints[static_cast<std::size_t>(index)].v;
}

[[nodiscard]] std::vector<MotorPair> parse_couplings(const Model& model,
                                                     const std::vector<std::string>& texts) {
  std::vector<MotorPair> pairs;
  for (const std::string& text : texts) {
    const std::vector<std::string> names = text::split(text);
    if (names.size() != 2)
      throw UsageError("--couple '" + text + "': name two joints, as in joint_5,joint_6");
    const int first = dof_of(model, names[0], "--couple");
    const int second = dof_of(model, names[1], "--couple");
    if (first == second) throw UsageError("--couple '" + text + "': name two different joints");
    for (const MotorPair& other : pairs)
      if (std::minmax(other.first, other.second) == std::minmax(first, second))
        throw UsageError("--couple '" + text + "': this pair is named twice");
    pairs.push_back({first, second, 1.0});
  }
  return pairs;
}

/// N·m for one unit of the log, by joint. Currents without a gain are not used as soon as one is
/// given; where none is, they are found out.
[[nodiscard]] std::vector<double> parse_gains(const Model& model,
                                              const std::vector<Recording>& recordings,
                                              const std::vector<std::string>& texts) {
  std::map<int, double> given;
  for (const std::string& text : texts) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--gain '" + text + "': write it as joint=value");
    const int dof = dof_of(model, text::trimmed(text.substr(0, equals)), "--gain");
    given[dof] = parse_number(text.substr(equals + 1), "--gain '" + text + "'");
  }
  std::vector<double> gains;
  for (int j = 0; j < model.nv; ++j) {
    const bool current = recordings.front().current[static_cast<std::size_t>(j)];
    const auto it = given.find(j);
    const double otherwise = !current ? 1.0 : texts.empty() ? no_number : 0.0;
    gains.push_back(it != given.end() ? it->second : otherwise);
  }
  return gains;
}

[[nodiscard]] std::map<std::string, double> locked_joints(const RobotOptions& options,
                                                          const Model& model) {
  std::map<std::string, double> locked;
  for (const JointDescription& joint : parse_file(options.file).joints)
    if (joint.type != JointType::fixed && !joint.mimic && model.find_joint(joint.name) < 0)
      locked[joint.name] = 0.0;
  for (const std::string& text : options.locked) {
    const auto equals = text.rfind('=');
    locked[text::trimmed(text.substr(0, equals))] =
        parse_number(text.substr(equals + 1), "--locked");
  }
  return locked;
}

void print_result(const Model& model, const Identification& result) {
  std::vector<Row> rows = {{"joint", "nominal %", "+ friction %", "full %", "RMS N m", "delay ms",
                            "rotor", "viscous", "Coulomb", "offset"}};
  for (int j = 0; j < model.nv; ++j) {
    const Drive& drive = result.drives.joints[static_cast<std::size_t>(j)];
    Row row = {model.joints[static_cast<std::size_t>(j)].name};
    for (const CandidateScore& score : result.scores) row.push_back(percent(score.by_joint[j]));
    const bool used = drive.factor != 0.0;
    row.push_back(used ? to_short_text(drive.noise) : "-");
    row.push_back(used ? to_short_text(std::round(1e4 * drive.delay) / 10.0) : "-");
    for (const double value :
         {drive.rotor, drive.friction.viscous, drive.friction.coulomb, drive.offset})
      row.push_back(used ? to_short_text(value) : "-");
    rows.push_back(std::move(row));
  }
  Row all = {"all joints"};
  for (const CandidateScore& score : result.scores) all.push_back(percent(score.held_out));
  all.resize(rows.front().size());
  rows.push_back(std::move(all));
  std::cout << "\nError on the data held out, RMS over RMS of the effort\n";
  print_table(std::cout, rows);
}

[[nodiscard]] std::string verdict(const Identification& result, const std::string& directory) {
  const auto error = [&](Candidate c) {
    return percent(result.scores[static_cast<std::size_t>(c)].held_out);
  };
  if (result.chosen == Candidate::nominal)
    return "The URDF as it is predicts the held-out efforts best (" + error(Candidate::nominal) +
           " %): nothing was found that is better.";
  return "The " + std::string(to_string(result.chosen)) +
         " model predicts the held-out efforts to " + error(result.chosen) +
         " %, the URDF as it is to " + error(Candidate::nominal) + " %: written to " + directory +
         ".";
}

/// The load on a link, by the model in a folder or the URDF as it is.
int weigh_command(const IdentifyCommand& options) {
  std::string folder = options.model;
  if (folder.empty()) {  // a robot.urdf that was identified has the rest beside it
    const std::filesystem::path beside = std::filesystem::path(options.robot.file).parent_path();
    if (std::filesystem::exists(beside / "identify.json"))
      folder = beside.empty() ? "." : beside.string();
  }
  const Log first = read_log_or_bag(options.logs.front());
  const bool known = !folder.empty();
  Identified identified;
  if (known) {
    if (!options.log.gains.empty())
      throw UsageError("--gain has no use here: those of " + folder + " are taken");
    identified = read_identified(folder);
    check_joints(identified, first);
  }
  const Model model = known ? load_identified(identified, options.robot, identified.urdf)
                            : robot_of_log(options.robot, first);
  const int link = model.find_link(options.weigh);
  if (link < 0)
    throw UsageError("--weigh: the robot has no link '" + options.weigh +
                     "'; `dynamics info` lists them");
  std::vector<Recording> recordings;
  for (const std::string& file : options.logs)
    recordings.push_back(cleaned(read_log_or_bag(file), model, options.log.rate));
  Drives drives = nominal_drives(model);
  if (known) {
    drives = drives_of(identified, model);
  } else {
    const std::vector<double> gains = parse_gains(model, recordings, options.log.gains);
    for (std::size_t j = 0; j < gains.size(); ++j) {
      drives.joints[j].factor = gains[j];
      if (std::isnan(gains[j]))
        throw UsageError(
            "the log has currents: give --gain for its joints, or the folder of an "
            "identified robot with --model");
    }
  }
  const WeighedLoad load = weigh(model, drives, known, recordings, link);
  std::cout << "The load on " << options.weigh << ", in its frame\n";
  const auto& p = load.payload;
  const std::string mass = text::to_short_text(p.mass);
  std::vector<Row> rows = {{"", "", "standard deviation", ""},
                           {"mass", mass, to_short_text(load.mass_deviation), "kg"}};
  const bool seen = p.mass > 0.05 && p.mass > 5.0 * load.mass_deviation;
  if (seen) {
    const char* const names[] = {"x", "y", "z"};
    for (int k = 0; k < 3; ++k)
      rows.push_back({std::string("centre of mass, ") + names[k], to_short_text(p.com[k]),
                      to_short_text(load.com_deviation[k]), "m"});
  }
  print_table(std::cout, rows);
  if (!seen) {
    std::cout << "No load to be seen.\n";
    return 0;
  }
  std::cout << "Error of the efforts " << percent(load.without) << " % without the load, "
            << percent(load.with) << " % with it\n--payload " << options.weigh << ',' << mass;
  for (int k = 0; k < 3; ++k) std::cout << ',' << to_short_text(p.com[k]);
  if (load.rigid) {
    const auto& I = p.inertia;
    for (const double x : {I.xx, I.xy, I.xz, I.yy, I.yz, I.zz})
      std::cout << ',' << to_short_text(x);
  }
  std::cout << '\n';
  return 0;
}

int identify_command(const IdentifyCommand& options) {
  if (!options.weigh.empty()) return weigh_command(options);
  check_writable_folder(options.directory);
  const std::string text = read_text_file(options.robot.file);
  if (text.find('<') == text.npos)
    throw UsageError(options.robot.file + ": a robot to be identified has to be a URDF");
  const Log first = read_log_or_bag(options.logs.front());
  const Model model = robot_of_log(options.robot, first);
  const auto recordings_of = [&](const std::vector<std::string>& files) {
    std::vector<Recording> recordings;
    for (const std::string& file : files)
      recordings.push_back(cleaned(read_log_or_bag(file), model, options.log.rate));
    return recordings;
  };
  const std::vector<Recording> recordings = recordings_of(options.logs);
  const std::vector<Recording> validation = recordings_of(options.validation);
  IdentifyOptions how;
  how.cutoff = options.cutoff;
  how.content = content_of(options.log.effort);
  how.couplings = parse_couplings(model, options.couplings);
  how.gains = parse_gains(model, recordings, options.log.gains);
  how.stribeck = !options.no_stribeck;

  std::vector<std::string> notes;
  for (const std::vector<Recording>* some : {&recordings, &validation})
    for (const Recording& recording : *some)
      for (const std::string& note : recording.notes)
        notes.push_back(recording.source + ": " + note);
  Identification result;
  {
    Progress progress(1.0, false);
    how.progress = [&](double share, const char* what) { progress.show(share, what); };
    result = identify(model, recordings, validation, how);
  }
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  for (const std::string& note : notes) std::cout << "- " << note << '\n';
  print_result(model, result);
  for (const std::string& advice : result.advice) std::cout << "! " << advice << '\n';
  const Recording& shown = validation.empty() ? recordings.front() : validation.front();
  const std::string sentence = verdict(result, options.directory);
  write_identified(options.directory,
                   {options.robot.file, model, locked_joints(options.robot, model), result, shown,
                    notes, sentence});
  std::cout << '\n' << sentence << '\n';
  return result.chosen == Candidate::nominal ? nothing_better : 0;
}

}  // namespace

Subcommand add_identify(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("identify", "Find the model that is true from logs of the real robot");
  auto options = std::make_shared<IdentifyCommand>();
  add_robot_options(*app, options->robot);
  app->add_option("LOG", options->logs,
                  "CSV: time,q_<joint>…,tau_<joint>… or current_<joint>… (.gz too),\n"
                  "or a rosbag2 bag with joint states")
      ->required();
  app->add_option("-o,--output", options->directory, "Folder to write to")
      ->type_name("DIR")
      ->capture_default_str();
  app->add_option("--validate", options->validation,
                  "Logs to compare the models on, instead of the last quarter of each LOG")
      ->type_name("LOG");
  add_log_options(*app, options->log);
  app->add_option("--effort", options->log.effort,
                  "What the hardware reports: the whole effort, or without gravity's share")
      ->check(CLI::IsMember({"auto", "whole", "without_gravity"}))
      ->capture_default_str()
      ->group("Logs");
  app->add_option("--couple", options->couplings,
                  "A motor that turns with two joints, as in many wrists (repeatable)")
      ->type_name("A,B")
      ->expected(1)
      ->take_all();
  app->add_option("--cutoff", options->cutoff,
                  "Below which efforts are compared, Hz (default: from the motion)")
      ->check(cutoff_range());
  app->add_option("--weigh", options->weigh,
                  "Leave the robot as it is and find the load that this link carries")
      ->type_name("LINK");
  app->add_option("--model", options->model,
                  "With --weigh: the folder of the identified robot (default: where robot.urdf is)")
      ->type_name("DIR");
  app->add_flag("--no-stribeck", options->no_stribeck, "Friction without Stribeck's effect");
  return {app, [app, options] {
            if (options->weigh.empty() && app->count("--model") > 0)
              throw UsageError("--model is for --weigh");
            for (const char* other :
                 {"--output", "--validate", "--effort", "--couple", "--cutoff", "--no-stribeck"})
              if (!options->weigh.empty() && app->count(other) > 0)
                throw UsageError(std::string(other) + " has no use with --weigh; leave it out");
            return identify_command(*options);
          }};
}

}  // namespace dynamics_core::tools
