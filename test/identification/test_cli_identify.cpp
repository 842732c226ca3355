// SPDX-License-Identifier: Apache-2.0
/// `dynamics identify` and `dynamics validate` as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <regex>
#include <sstream>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/load.hpp"
#include "support/command.hpp"

namespace {

using namespace dynamics_core;
using support::lines_of;
using support::Outcome;
using support::read_file;
using support::run_dynamics;
using testing::AllOf;
using testing::HasSubstr;

const std::string robot = RD_SOURCE_DIR "/config/robots/ur5e.urdf";

/// Names that YAML takes for something else.
constexpr const char* odd_names = R"(<robot name="odd"><link name="base"/>
  <link name="a"><inertial><origin xyz="0.1 0 0.2"/><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="b"><inertial><origin xyz="0.1 0.1 0.2"/><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="no" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="100"/></joint>
  <joint name="a: b" type="revolute"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.5"/><limit lower="-1" upper="1" velocity="1" effort="100"/></joint>
</robot>)";

struct Sample {
  double t;
  Eigen::VectorXd q, tau;
};

/// A log of the UR5e, after `change` of each sample; an empty one takes its line out.
std::string log_text(double seconds, const std::function<void(Sample&)>& change = {},
                     bool stamps = true) {
  const Model model = load_urdf(robot);
  Dynamics<double> dynamics(model);
  std::ostringstream text;
  text.precision(10);
  if (stamps) text << "time,";
  for (const JointInfo& joint : model.joints) text << "q_" << joint.name << ',';
  for (const JointInfo& joint : model.joints)
    text << "tau_" << joint.name << (&joint == &model.joints.back() ? "\n" : ",");
  for (int i = 0; i < static_cast<int>(100.0 * seconds); ++i) {
    Sample s{0.01 * i, Eigen::VectorXd(model.nv), Eigen::VectorXd(model.nv)};
    Eigen::VectorXd v(model.nv), a(model.nv);
    for (int j = 0; j < model.nv; ++j) {
      const double w = 1.1 + 0.37 * j;
      s.q[j] = 0.9 * std::sin(w * s.t + j) + 0.4 * std::sin(2.6 * w * s.t);
      v[j] = 0.9 * w * std::cos(w * s.t + j) + 1.04 * w * std::cos(2.6 * w * s.t);
      a[j] = -0.9 * w * w * std::sin(w * s.t + j) - 2.704 * w * w * std::sin(2.6 * w * s.t);
    }
    EXPECT_EQ(dynamics.inverse_dynamics(s.q, v, a, s.tau), Status::ok);
    s.tau += 4.0 * v + 3.0 * (v.array() / (v.array().square() + 4e-4).sqrt()).matrix();
    if (change) change(s);
    if (stamps) text << s.t << ',';
    for (const double q : s.q) text << q << ',';
    for (int j = 0; j < model.nv; ++j) text << s.tau[j] << (j + 1 < model.nv ? "," : "\n");
  }
  return text.str();
}

class CliIdentify : public testing::Test {
 protected:
  support::TemporaryDirectory directory;
};

TEST_F(CliIdentify, WritesAModelThatPredictsAnotherLog) {
  const std::string log = directory.write("log.csv", log_text(15.0));
  const std::string found = directory.path("found");
  const Outcome outcome = run_dynamics("identify " + robot + " " + log + " -o " + found);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("predicts the held-out efforts"));
  EXPECT_THAT(read_file(found + "/friction.yaml"),
              AllOf(HasSubstr("feedforward_controller:"), HasSubstr("viscous: ")));

  const std::string off =
      directory.write("off.csv", log_text(10.0, [](Sample& s) { s.tau.setZero(); }));
  const Outcome nothing = run_dynamics("validate " + robot + " " + off + " --model " + found);
  EXPECT_EQ(nothing.code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("all zero"));

  const std::string csv = directory.path("efforts.csv");
  const Outcome valid =
      run_dynamics("validate " + robot + " " + log + " --model " + found + " --csv " + csv);
  ASSERT_EQ(valid.code, 0) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("identified %"));
  const std::vector<std::string> lines = lines_of(read_file(csv));
  EXPECT_EQ(lines.size(), 1501U);
  EXPECT_THAT(lines.front(), AllOf(HasSubstr("time,measured_shoulder_pan_joint,"),
                                   HasSubstr(",predicted_wrist_3_joint")));
  EXPECT_THAT(read_file(csv), testing::Not(HasSubstr("nan")));
}

TEST_F(CliIdentify, TakesALogWithItsFlaws) {
  int i = 0;
  std::string text = log_text(15.0, [&](Sample& s) {
    if (++i % 97 == 0) s.tau[2] = 1e293;
    if (i == 400) s.q[1] = -50.0;
    if (i > 700) s.t += 2.0;  // a gap
  });
  text += "17.0,0.1,0.2";  // breaks off
  const std::string log = directory.write("log.csv", text);
  const Outcome outcome =
      run_dynamics("identify " + robot + " " + log + " -o " + directory.path("found"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("(1 of them positions)"), HasSubstr("1 gaps"),
                                 HasSubstr("the last line breaks off")));
}

TEST_F(CliIdentify, RefusesWhatNothingCanBeLearntFromAndWritesNothing) {
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string log = directory.write("log.csv", text);
    const Outcome outcome =
        run_dynamics("identify " + robot + " " + log + " -o " + directory.path("found"));
    EXPECT_EQ(outcome.code, 1) << why << outcome.out;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(why), HasSubstr("; "), HasSubstr("log.csv")));
    EXPECT_FALSE(std::filesystem::exists(directory.path("found"))) << why;
  };
  refuses("", "names no column q_");
  refuses("time,q_a,tau_a\n0,0,0\n", "none of its joints");
  refuses(log_text(1.0), "1 s long");
  refuses(log_text(10.0, [](Sample& s) { s.q.setOnes(); }), "nothing moves");
  refuses(log_text(10.0, [](Sample& s) { s.q.tail(5).setOnes(); }), "only joint");
  refuses(log_text(10.0, [](Sample& s) { s.q *= 180.0 / 3.14159; }), "degrees");
  refuses(log_text(10.0, [](Sample& s) { s.q.setConstant(std::nan("")); }), "holds no number");
  refuses(log_text(10.0, [](Sample& s) { s.t *= 1e9; }), "nanoseconds");
  refuses(log_text(10.0, {}, false), "--rate");
  refuses(log_text(10.0, [](Sample& s) { s.tau.setZero(); }), "all zero");
  refuses(log_text(10.0, [](Sample& s) { s.tau.setConstant(3.0); }), "never change");
  refuses(log_text(10.0, [](Sample& s) { s.tau *= 1e300; }), "e+30");
  // Bursts of three samples: few of them as fine as their steps would need a grid without end.
  int i = 0;
  const auto burst = [&](Sample& s) {
    s.t = 0.03 * (i / 300) + 1e-9 * (i % 300);
    ++i;
  };
  refuses(log_text(10.0, burst), "s long");
  refuses("time;q_a;tau_a\n0;0;0\n", "semicolons");
  const Outcome device = run_dynamics("identify " + robot + " /dev/null");
  EXPECT_EQ(device.code, 1);
  EXPECT_THAT(device.err, HasSubstr("is a device"));
  const Outcome folder = run_dynamics("identify " + robot + " " + directory.path("."));
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, HasSubstr("is a folder"));
}

TEST_F(CliIdentify, TakesSamplesThatComeInThrees) {
  int i = 0;
  const std::string log = directory.write("log.csv", log_text(30.0, [&](Sample& s) {
                                            s.t -= 0.01 * (i % 3) - 1e-9 * (i % 3);
                                            ++i;
                                          }));
  const Outcome outcome =
      run_dynamics("identify " + robot + " " + log + " -o " + directory.path("found"));
  EXPECT_GE(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("about 30 ms"));
}

TEST_F(CliIdentify, RefusesCutoffsAndRatesThatLeaveNothing) {
  const std::string log = directory.write("log.csv", log_text(5.0));
  for (const std::string option :
       {"--cutoff 1e-9", "--rate 1e-9", "--cutoff nan", "--rate 1e300"}) {
    const Outcome outcome = run_dynamics("identify " + robot + " " + log + " " + option);
    EXPECT_EQ(outcome.code, 2) << option << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(option.substr(0, option.find(' '))));
  }
}

TEST_F(CliIdentify, CouplesTwoJointsOnce) {
  const std::string log = directory.write("log.csv", log_text(5.0));
  const std::string pair = " --couple wrist_1_joint,wrist_2_joint";
  for (const std::string& options : {std::string(" --couple wrist_1_joint,wrist_1_joint"),
                                     pair + pair, pair + " --couple wrist_2_joint,wrist_1_joint"}) {
    const Outcome outcome = run_dynamics("identify " + robot + " " + log + options);
    EXPECT_EQ(outcome.code, 2) << options << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("--couple"));
  }
}

TEST_F(CliIdentify, ValidateRefusesAFolderWithoutMeaning) {
  const std::string log = directory.write("log.csv", log_text(10.0));
  const std::string found = directory.path("found");
  ASSERT_EQ(run_dynamics("identify " + robot + " " + log + " -o " + found).code, 0);
  const auto whole = nlohmann::json::parse(read_file(found + "/identify.json"));
  const auto refuses = [&](const char* place, const nlohmann::json& value, const char* why) {
    nlohmann::json damaged = whole;
    damaged[nlohmann::json::json_pointer(place)] = value;
    (void)directory.write("found/identify.json", damaged.dump());
    const Outcome outcome = run_dynamics("validate " + robot + " " + log + " --model " + found);
    EXPECT_EQ(outcome.code, 1) << place << outcome.out;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(why), HasSubstr("identify again"))) << place;
  };
  refuses("/cutoff", 0.0, "'cutoff' is 0");
  refuses("/cutoff", -3.0, "'cutoff' is -3");
  refuses("/joints", nlohmann::json::array(), "no joints");
  refuses("/joints/1/factor", nullptr, "'factor' is null");
  refuses("/joints/1/delay", 1e200, "'delay'");
  refuses("/joints/2/friction/coulomb", "much", "'coulomb'");
  refuses("/joints/2/friction/transition", -1.0, "'transition'");
}

TEST_F(CliIdentify, WeighsBesideTheRobotAndOnlyWhatTheEffortsSay) {
  const std::string log = directory.write("log.csv", log_text(10.0));
  const std::string found = directory.path("found");
  ASSERT_EQ(run_dynamics("identify " + robot + " " + log + " -o " + found).code, 0);
  const auto weigh = [&](const std::string& text, const std::string& more = "") {
    (void)directory.write("weighed.csv", text);
    return run_dynamics(
        "--version >/dev/null; cd " + found +
        " && " RD_DYNAMICS_EXE " identify robot.urdf ../weighed.csv --weigh wrist_3_link " + more);
  };
  const Outcome none = weigh(log_text(10.0));
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("No load to be seen"));
  // A joint without efforts says nothing; it does not say 0 N m.
  std::string text = log_text(10.0);
  text.replace(text.find("tau_shoulder_lift_joint"), 3, "xau");
  const Outcome fewer = weigh(text);
  EXPECT_EQ(fewer.code, 0) << fewer.err;
  EXPECT_THAT(fewer.out, HasSubstr("No load to be seen"));
  const auto refuses = [&](const std::function<void(Sample&)>& change, const char* why) {
    const Outcome outcome = weigh(log_text(10.0, change));
    EXPECT_EQ(outcome.code, 1) << why << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refuses([](Sample& s) { s.tau.setZero(); }, "all zero");
  refuses([](Sample& s) { s.tau *= 1e300; }, "e+30");
  refuses([](Sample& s) { s.tau *= 0.5; }, "would weigh -");
  for (const char* option : {"--cutoff 3", "--couple a,b", "--gain wrist_1_joint=2", "-o other"}) {
    const Outcome outcome = weigh(log_text(10.0), option);
    EXPECT_EQ(outcome.code, 2) << option << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("no use")) << option;
  }
}

TEST_F(CliIdentify, LeavesOldFilesAndDevicesAlone) {
  namespace fs = std::filesystem;
  const std::string file = directory.write("odd.urdf", odd_names);
  const std::string old = directory.write("motion.csv", "old");
  const auto run = [&](const std::string& csv, const std::string& goal) {
    return run_dynamics("excite " + file + " --tries 3 --goal " + goal + " -o " + csv);
  };
  // A link keeps leading where it leads, whether to a device or a file.
  const std::string full = directory.path("full");
  fs::create_symlink("/dev/full", full);
  EXPECT_EQ(run(old, full).code, 1);
  EXPECT_EQ(read_file(old), "old");
  EXPECT_FALSE(fs::exists(old + ".part"));
  EXPECT_TRUE(fs::is_symlink(full));
  EXPECT_TRUE(fs::is_character_file(full));
  const std::string link = directory.path("link.csv");
  fs::create_symlink(old, link);
  EXPECT_EQ(run(link, directory.path("goal.yaml")).code, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_THAT(read_file(old), HasSubstr("time,"));
  // Said before anything is computed.
  const std::string nowhere = directory.path("nowhere/motion.csv");
  const Outcome outcome = run(nowhere, directory.path("goal.yaml"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("there is no folder"));
  const Outcome no_folder =
      run_dynamics("identify " + robot + " " + directory.path("none.csv") + " -o " + file);
  EXPECT_EQ(no_folder.code, 1);
  EXPECT_THAT(no_folder.err, HasSubstr("cannot be made a folder"));
}

TEST_F(CliIdentify, ExciteRefusesRatesAndTimesWithoutMeasure) {
  const std::string file = directory.write("odd.urdf", odd_names);
  const std::string csv = directory.path("motion.csv");
  for (const char* option : {"--rate 1e9", "--rate nan", "--duration 1e9", "--duration nan",
                             "--period 1e-9", "--acceleration inf"})
    EXPECT_EQ(run_dynamics("excite " + file + " " + option + " -o " + csv).code, 2) << option;
  EXPECT_EQ(run_dynamics("excite " + file + " --rate 1e4 --duration 3600 -o " + csv).code, 1);
  EXPECT_FALSE(std::filesystem::exists(csv));
}

TEST_F(CliIdentify, ExciteRefusesARobotWithoutMovingJoints) {
  const std::string file =
      directory.write("still.urdf", R"(<robot name="still"><link name="base"/></robot>)");
  const std::string csv = directory.path("motion.csv");
  const Outcome outcome = run_dynamics("excite " + file + " -o " + csv);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_FALSE(std::filesystem::exists(csv));
}

/// The numbers of a block of YAML, as they are written.
std::vector<std::string> numbers_of(const std::string& yaml) {
  std::vector<std::string> numbers;
  const std::regex number(R"([\[ ](-?[0-9][^,\]\}\s]*))");
  for (const std::string& line : lines_of(yaml)) {
    const std::string text = line.substr(0, line.find('#'));
    for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it)
      numbers.push_back((*it)[1]);
  }
  return numbers;
}

TEST_F(CliIdentify, WritesParametersThatAreAllNumbersWithAFraction) {
  // Without friction and rotors zeros are written.
  const std::string log = directory.write(
      "log.csv", log_text(10.0, [](Sample& s) { s.tau[5] = 1e-3 * std::sin(3.0 * s.t); }));
  const std::string found = directory.path("found");
  const Outcome outcome = run_dynamics("identify " + robot + " " + log + " -o " + found);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string yaml = read_file(found + "/friction.yaml");
  const std::vector<std::string> numbers = numbers_of(yaml);
  ASSERT_GE(numbers.size(), 30U) << yaml;
  for (const std::string& number : numbers) EXPECT_THAT(number, HasSubstr(".")) << yaml;
  EXPECT_THAT(yaml, HasSubstr("gear_ratio: [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]"));
}

TEST_F(CliIdentify, WritesGoalsWhoseNamesStayNames) {
  const std::string file = directory.write("odd.urdf", odd_names);
  const std::string goal = directory.path("goal.yaml");
  const Outcome outcome = run_dynamics("excite " + file + " --tries 3 --goal " + goal + " -o " +
                                       directory.path("motion.csv"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string yaml = read_file(goal);
  EXPECT_THAT(yaml, HasSubstr(R"(joint_names: ["no", "a: b"])"));
  const auto end = yaml.find(", time_from_start");
  for (const std::string& number : numbers_of(yaml.substr(0, end)))
    EXPECT_THAT(number, HasSubstr("."));
}

// --- recordings of real robots, where they are ---------------------------------------------------

TEST_F(CliIdentify, PredictsARealRobot) {
  const std::string recordings = RD_SHARED_DIR "/recordings/ur10e/";
  if (!std::filesystem::exists(recordings)) GTEST_SKIP() << "there are no recordings";
  std::string gains;
  for (const char* gain :
       {"shoulder_pan_joint=11.976", "shoulder_lift_joint=11.976", "elbow_joint=9.839",
        "wrist_1_joint=10.763", "wrist_2_joint=10.763", "wrist_3_joint=10.763"})
    gains += std::string(" --gain ") + gain;
  const std::string found = directory.path("found");
  const Outcome outcome =
      run_dynamics("identify " + recordings + "ur10e.urdf " + recordings + "id_50s_14harm.csv.gz " +
                   recordings + "id_30s_12harm.csv.gz -o " + found + gains);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto mass = [&](const std::string& log) {
    const Outcome weighed = run_dynamics("identify " + found + "/robot.urdf " + recordings + log +
                                         " --weigh wrist_3_link");
    EXPECT_EQ(weighed.code, 0) << weighed.err;
    double value = -1.0;
    for (const std::string& line : lines_of(weighed.out))
      if (line.find("mass") != line.npos && line.find("centre") == line.npos) {
        std::istringstream words(line);
        std::string name;
        words >> name >> value;
      }
    return value;
  };
  EXPECT_NEAR(mass("load_50s_14harm_2.805kg.csv.gz"), 2.805, 0.01 * 2.805);
  EXPECT_LT(std::abs(mass("id_30s_12harm.csv.gz")), 0.02);
}

}  // namespace
