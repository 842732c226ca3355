// SPDX-License-Identifier: Apache-2.0
/// Bags written with rosbag2 itself, against the same motion as comma-separated values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <rosbag2_cpp/writer.hpp>
#include <rosbag2_storage/storage_options.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/string.hpp>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/log.hpp"
#include "dynamics_core/load.hpp"
#include "support/command.hpp"

namespace {

namespace fs = std::filesystem;
using namespace dynamics_core;
using dynamics_core::identification::Log;
using dynamics_core::identification::parse_log;
using sensor_msgs::msg::JointState;
using support::Outcome;
using support::read_file;
using support::run_dynamics;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t start = 1'700'000'000'123'456'789;  // ns
constexpr std::int64_t late = 5'000'000;  // by which messages are recorded after their stamps, ns

/// One message, and when it was recorded.
struct Recorded {
  std::string topic;
  JointState message;
  std::int64_t when;
};

JointState joint_state(std::int64_t stamp, const std::vector<std::string>& names) {
  JointState message;
  message.header.stamp = rclcpp::Time(stamp);
  message.name = names;
  return message;
}

/// The two-link arm swings its joints, at 200 Hz with stamps that jitter.
std::vector<Recorded> motion(double seconds) {
  const Model model =
      load_urdf(support::TemporaryDirectory().write("arm.urdf", support::two_link_arm));
  Dynamics<double> dynamics(model);
  std::vector<Recorded> messages;
  for (int i = 0; i < static_cast<int>(200.0 * seconds); ++i) {
    const std::int64_t elapsed = 5'000'000LL * i + (i % 7) * 1'003;
    const double t = 1e-9 * static_cast<double>(elapsed);
    Eigen::VectorXd q(2), v(2), a(2), tau(2);
    for (int j = 0; j < 2; ++j) {
      const double w = 2.1 + 0.8 * j;
      q[j] = 0.9 * std::sin(w * t + j) + 0.4 * std::sin(2.6 * w * t);
      v[j] = 0.9 * w * std::cos(w * t + j) + 1.04 * w * std::cos(2.6 * w * t);
      a[j] = -0.9 * w * w * std::sin(w * t + j) - 2.704 * w * w * std::sin(2.6 * w * t);
    }
    EXPECT_EQ(dynamics.inverse_dynamics(q, v, a, tau), Status::ok);
    tau += 2.0 * v;
    JointState message = joint_state(start + elapsed, {"shoulder", "elbow"});
    message.position = {q[0], q[1]};
    message.velocity = {v[0], v[1]};
    message.effort = {tau[0], tau[1]};
    messages.push_back({"/joint_states", message, start + elapsed + late});
  }
  return messages;
}

/// The same by hand.
std::string csv_of(const std::vector<Recorded>& messages) {
  std::string csv = "time,q_shoulder,v_shoulder,tau_shoulder,q_elbow,v_elbow,tau_elbow\n";
  for (const Recorded& recorded : messages) {
    const JointState& m = recorded.message;
    char line[400];
    std::snprintf(line, sizeof line, "%d.%09u,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g\n",
                  m.header.stamp.sec, m.header.stamp.nanosec, m.position[0], m.velocity[0],
                  m.effort[0], m.position[1], m.velocity[1], m.effort[1]);
    csv += line;
  }
  return csv;
}

class Bags : public testing::TestWithParam<std::string> {
 protected:
  /// Writes a bag of the storage under test; returns its folder.
  std::string write(const std::string& name, const std::vector<Recorded>& messages,
                    const std::vector<std::string>& empty_topics = {}) {
    rosbag2_storage::StorageOptions options;
    options.uri = directory.path(name);
    options.storage_id = GetParam();
    rosbag2_cpp::Writer writer;
    writer.open(options);
    std_msgs::msg::String other;
    other.data = "of no concern";
    writer.write(other, "/chatter", rclcpp::Time(start));
    for (const std::string& topic : empty_topics)
      writer.create_topic({0, topic, "sensor_msgs/msg/JointState", "cdr", {}, ""});
    for (const Recorded& recorded : messages)
      writer.write(recorded.message, recorded.topic, rclcpp::Time(recorded.when));
    writer.close();
    return options.uri;
  }
  /// The one file in the bag.
  std::string file_in(const std::string& bag) const {
    const std::string extension = GetParam() == "mcap" ? ".mcap" : ".db3";
    for (const fs::directory_entry& entry : fs::directory_iterator(bag))
      if (entry.path().extension() == extension) return entry.path().string();
    ADD_FAILURE() << "no " << extension << " in " << bag;
    return {};
  }
  /// What bag_to_csv says, with its exit code.
  Outcome convert(const std::string& arguments) const {
    const std::string command = RD_BAG_TO_CSV " " + arguments + " >" + directory.path("out") +
                                " 2>" + directory.path("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(directory.path("out")),
            read_file(directory.path("err"))};
  }
  Log log_of(const std::string& bag) const {
    const Outcome outcome = convert(bag);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_log(outcome.out, bag);
  }
  /// One sentence that names the bag and the remedy, from the program and through `identify`.
  void refuses(const std::string& bag, const std::string& problem,
               const std::string& remedy) const {
    const Outcome outcome = convert(bag);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(bag + ": "), HasSubstr(problem), HasSubstr("; "),
                                   HasSubstr(remedy)));
    EXPECT_EQ(support::lines_of(outcome.err).size(), 1U) << outcome.err;
    const std::string arm = directory.write("arm.urdf", support::two_link_arm);
    const Outcome identified =
        run_dynamics("identify " + arm + " " + bag + " -o " + directory.path("untouched"));
    EXPECT_EQ(identified.code, 1);
    EXPECT_THAT(identified.err, AllOf(HasSubstr(problem), HasSubstr(remedy)));
    EXPECT_FALSE(fs::exists(directory.path("untouched")));
  }

  support::TemporaryDirectory directory;
};

INSTANTIATE_TEST_SUITE_P(Storages, Bags, testing::Values("sqlite3", "mcap"));

TEST_P(Bags, HoldTheSameNumbersAsCsv) {
  const std::vector<Recorded> messages = motion(3.0);
  const Log expected = parse_log(csv_of(messages), "log.csv");
  const std::string bag = write("bag", messages);
  for (const std::string& path : {bag, file_in(bag)}) {
    const Log log = log_of(path);
    EXPECT_EQ(log.joints, expected.joints);
    EXPECT_EQ(log.time, expected.time);
    EXPECT_EQ(log.q, expected.q);
    EXPECT_EQ(log.tau, expected.tau);
  }
  const std::string header = support::lines_of(convert(bag).out).front();
  EXPECT_EQ(header, support::lines_of(csv_of(messages)).front());
}

TEST_P(Bags, AreIdentifiedAndValidatedAsCsvIs) {
  const std::vector<Recorded> messages = motion(15.0);
  const std::string arm = directory.write("arm.urdf", support::two_link_arm);
  const std::string csv = directory.write("log.csv", csv_of(messages));
  const std::string bag = write("bag", messages);
  const auto identify = [&](const std::string& log, const std::string& folder) {
    const Outcome outcome =
        run_dynamics("identify " + arm + " " + log + " -o " + directory.path(folder));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_file(directory.path(folder) + "/robot.urdf");
  };
  const std::string from_csv = identify(csv, "from_csv");
  EXPECT_THAT(from_csv, HasSubstr("<inertial>"));
  EXPECT_EQ(identify(bag, "from_bag"), from_csv);

  const auto validate = [&](const std::string& log) {
    const std::string efforts = directory.path("efforts.csv");
    const Outcome outcome = run_dynamics("validate " + arm + " " + log + " --model " +
                                         directory.path("from_csv") + " --csv " + efforts);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_file(efforts);
  };
  const std::string efforts = validate(csv);
  EXPECT_EQ(support::lines_of(efforts).size(), messages.size() + 1);
  EXPECT_EQ(validate(bag), efforts);
  EXPECT_EQ(validate(file_in(bag)), efforts);
}

TEST_P(Bags, WithoutStampsHaveTheTimeOfRecording) {
  std::vector<Recorded> messages = motion(1.0);
  const Log expected = parse_log(csv_of(messages), "log.csv");
  for (Recorded& recorded : messages) recorded.message.header.stamp = rclcpp::Time(0, 0);
  const Log log = log_of(write("bag", messages));
  ASSERT_EQ(log.time.size(), expected.time.size());
  for (std::size_t i = 0; i < log.time.size(); ++i)
    EXPECT_NEAR(log.time[i] - expected.time[i], 1e-9 * late, 1e-6);
}

TEST_P(Bags, OfPublishersThatShareStampsAreJoined) {
  const std::vector<Recorded> whole = motion(1.0);
  const Log expected = parse_log(csv_of(whole), "log.csv");
  std::vector<Recorded> parts;
  for (const Recorded& recorded : whole) {
    for (const std::size_t j : {1U, 0U}) {
      const JointState& m = recorded.message;
      JointState part = joint_state(rclcpp::Time(m.header.stamp).nanoseconds(), {m.name[j]});
      part.position = {m.position[j]};
      part.velocity = {m.velocity[j]};
      part.effort = {m.effort[j]};
      parts.push_back({"/joint_states", part, recorded.when + static_cast<std::int64_t>(j)});
    }
  }
  const std::string bag = write("bag", parts);
  EXPECT_EQ(convert(bag).err, "");
  const Log log = log_of(bag);
  EXPECT_EQ(log.time, expected.time);
  ASSERT_THAT(log.joints, testing::UnorderedElementsAre("shoulder", "elbow"));
  for (int j = 0; j < 2; ++j) {
    const int e = log.joints[static_cast<std::size_t>(j)] == "shoulder" ? 0 : 1;
    EXPECT_EQ(log.q.col(j), expected.q.col(e));
    EXPECT_EQ(log.tau.col(j), expected.tau.col(e));
  }
}

// A gripper at 50 Hz, which has no efforts and moves along a straight line, so that between its
// stamps it is known.
TEST_P(Bags, OfPublishersWithStampsOfTheirOwnAreInterpolated) {
  std::vector<Recorded> messages = motion(2.0);
  const std::size_t arm = messages.size();
  for (int i = 0; i < 101; ++i) {
    const std::int64_t elapsed = 20'000'000LL * i - 3'000'000;
    JointState gripper = joint_state(start + elapsed, {"finger"});
    gripper.position = {1e-3 + 0.01 * 1e-9 * static_cast<double>(elapsed)};
    messages.push_back({"/joint_states", gripper, start + elapsed + late});
  }
  const std::string bag = write("bag", messages);
  EXPECT_THAT(convert(bag).err, AllOf(HasSubstr("'finger'"), HasSubstr("interpolated")));
  const Log log = log_of(bag);
  EXPECT_EQ(static_cast<std::size_t>(log.samples()), arm);
  ASSERT_THAT(log.joints, ElementsAre("shoulder", "elbow", "finger"));
  EXPECT_TRUE(log.tau.col(2).array().isNaN().all());
  const std::string header = support::lines_of(convert(bag).out).front();
  EXPECT_THAT(header, AllOf(HasSubstr(",q_finger"), Not(HasSubstr("v_finger")),
                            Not(HasSubstr("tau_finger"))));
  for (Eigen::Index i = 0; i < log.samples(); ++i) {
    const double elapsed =
        log.time[static_cast<std::size_t>(i)] - 1e-9 * static_cast<double>(start);
    EXPECT_NEAR(log.q(i, 2), 1e-3 + 0.01 * elapsed, 1e-8) << i;  // stamps as doubles: 0.2 µs
  }
}

TEST_P(Bags, WhereSomeMessagesListTheJointsOtherwiseLeaveTheseOutAndSaySo) {
  std::vector<Recorded> messages = motion(1.0);
  const Log expected = parse_log(csv_of(messages), "log.csv");
  for (int i = 0; i < 3; ++i) {
    JointState other = joint_state(start + i, {"elbow", "shoulder"});
    other.position = other.effort = {7.0, 7.0};
    messages.push_back({"/joint_states", other, start + i});
  }
  const std::string bag = write("bag", messages);
  EXPECT_THAT(convert(bag).err, AllOf(HasSubstr("3 messages"), HasSubstr("'elbow', 'shoulder'")));
  EXPECT_EQ(log_of(bag).q, expected.q);

  for (int i = 0; i < 200; ++i)
    messages.push_back({"/joint_states", joint_state(start, {"joint" + std::to_string(i)}), start});
  refuses(write("many", messages), "different lists of joints", "record one robot");
}

TEST_P(Bags, WithSeveralTopicsGiveJointStatesOrTheOneThatIsNamed) {
  std::vector<Recorded> messages = motion(1.0);
  const std::size_t wanted = messages.size();
  JointState other = joint_state(start, {"other"});
  other.position = {1.0};
  other.effort = {2.0};
  messages.push_back({"/left/joint_states", other, start});
  const std::string bag = write("bag", messages);
  EXPECT_THAT(convert(bag).err, HasSubstr("/joint_states was taken"));
  const Log log = log_of(bag);
  EXPECT_EQ(static_cast<std::size_t>(log.samples()), wanted);
  EXPECT_THAT(parse_log(convert(bag + " /left/joint_states").out, bag).joints,
              ElementsAre("other"));
  EXPECT_THAT(convert(bag + " /right").err, HasSubstr("'/left/joint_states'"));

  for (Recorded& recorded : messages)
    if (recorded.topic == "/joint_states") recorded.topic = "/right/joint_states";
  refuses(write("two", messages), "'/left/joint_states', '/right/joint_states'", "bag_to_csv");
}

TEST_P(Bags, ThatHoldNothingOfUseAreRefused) {
  refuses(write("none", {}), "holds no sensor_msgs/JointState", "ros2 bag record /joint_states");
  refuses(write("empty", {}, {"/joint_states"}), "holds no messages with joints on /joint_states",
          "while the robot moves");
  std::vector<Recorded> messages = motion(0.1);
  for (Recorded& recorded : messages)
    recorded.message.effort.assign(2, std::numeric_limits<double>::quiet_NaN());
  refuses(write("no_efforts", messages), "hold no efforts", "report them");
  for (Recorded& recorded : messages) recorded.message.position.clear();
  refuses(write("no_positions", messages), "hold no positions", "record the state");
  refuses(write("comma", {{"/joint_states", joint_state(start, {"a,b"}), start}}), "comma",
          "rename");
}

TEST_P(Bags, ThatAreBrokenAreRefused) {
  const std::string bag = write("bag", motion(1.0));
  const std::string file = file_in(bag);
  const std::string extension = fs::path(file).extension().string();
  fs::remove(bag + "/metadata.yaml");
  refuses(bag, "has no metadata.yaml", "ros2 bag reindex");
  refuses(directory.write("noise" + extension, "this is no bag at all"), "noise" + extension,
          "ros2 bag info");
  refuses(directory.write("nothing" + extension, ""), "nothing" + extension, "");
  fs::create_directory(directory.path("odd"));
  (void)directory.write("odd/metadata.yaml", "rosbag2_bagfile_information: [");
  refuses(directory.path("odd"), "cannot be opened", "ros2 bag info");
}

// Whatever is cut off, there are the first samples or a sentence, and never other numbers.
TEST_P(Bags, ThatBreakOffGiveTheirBeginningOrASentence) {
  const std::vector<Recorded> messages = motion(4.0);
  const Log expected = parse_log(csv_of(messages), "log.csv");
  const std::string whole = read_file(file_in(write("bag", messages)));
  const std::string extension = GetParam() == "mcap" ? ".mcap" : ".db3";
  for (int part = 1; part < 10; ++part) {
    const std::string file = directory.write("part" + std::to_string(part) + extension,
                                             whole.substr(0, whole.size() * part / 10));
    const Outcome outcome = convert(file);
    if (outcome.code != 0) {
      EXPECT_EQ(outcome.code, 1) << part;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr("; "))) << part;
      continue;
    }
    EXPECT_THAT(outcome.err, HasSubstr("what is there was taken")) << part;
    const Log log = parse_log(outcome.out, file);
    ASSERT_LE(log.samples(), expected.samples());
    EXPECT_EQ(log.q, expected.q.topRows(log.samples())) << part;
  }
}

TEST_P(Bags, AreRefusedWhereTheirReaderIsMissing) {
  const std::string bag = write("bag", motion(0.1));
  const std::string arm = directory.write("arm.urdf", support::two_link_arm);
  const std::string alone = directory.path("dynamics");
  fs::copy_file(RD_DYNAMICS_EXE, alone);
  const std::string command = "LD_LIBRARY_PATH=\"" +
                              fs::path(RD_DYNAMICS_EXE).parent_path().string() +
                              "/..:$LD_LIBRARY_PATH\" " + alone + " identify " + arm + " " + bag +
                              " 2>" + directory.path("err");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(read_file(directory.path("err")),
              AllOf(HasSubstr(bag), HasSubstr("was not built"), HasSubstr("rosbag2_cpp")));
}

}  // namespace
