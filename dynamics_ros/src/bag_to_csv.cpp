// SPDX-License-Identifier: Apache-2.0
/// Writes the joint states of a rosbag2 bag as the comma-separated values that `dynamics identify`
/// reads: bag_to_csv BAG [TOPIC] > log.csv. Remarks and errors go to stderr, a line each.

#include <rcutils/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <rclcpp/serialization.hpp>
#include <rclcpp/serialized_message.hpp>
#include <rosbag2_cpp/reader.hpp>
#include <rosbag2_storage/storage_filter.hpp>
#include <rosbag2_storage/storage_options.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/text.hpp"

namespace {

namespace text = dynamics_core::text;
using sensor_msgs::msg::JointState;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
/// A quarter of an hour of a seven-joint arm at 1 kHz, about half a gigabyte of text.
constexpr std::size_t most_numbers = 24'000'000;
constexpr std::size_t most_publishers = 100;
constexpr std::size_t fields = 3;  ///< of a joint: position, velocity, effort
const char* const columns[fields] = {"q_", "v_", "tau_"};

[[noreturn]] void refuse(const std::string& bag, const std::string& problem,
                         const std::string& remedy) {
  throw std::runtime_error(bag + ": " + problem + "; " + remedy);
}

void remark(const std::string& text) {
  std::fprintf(stderr, "%s\n", text::printable(text).c_str());
}

struct Sample {
  std::int64_t stamp = 0;      ///< ns
  std::vector<double> values;  ///< q, v and τ of one joint after the other; NaN: not reported
};

/// Messages with the same joints. Arm and gripper often speak by turns, each with stamps of its own.
struct Publisher {
  std::vector<std::string> joints;
  std::vector<Sample> samples;

  [[nodiscard]] bool reports(std::size_t value) const {
    return std::any_of(samples.begin(), samples.end(),
                       [&](const Sample& s) { return std::isfinite(s.values[value]); });
  }
  /// How many numbers of that field there are, of all joints.
  [[nodiscard]] std::size_t count(std::size_t field) const {
    std::size_t n = 0;
    for (const Sample& s : samples)
      for (std::size_t i = field; i < s.values.size(); i += fields) n += std::isfinite(s.values[i]);
    return n;
  }
  /// By a straight line between the samples about that stamp, which have to be sorted. NaN before
  /// the first and after the last.
  [[nodiscard]] double at(std::int64_t stamp, std::size_t value) const {
    const auto after =
        std::lower_bound(samples.begin(), samples.end(), stamp,
                         [](const Sample& s, std::int64_t when) { return s.stamp < when; });
    if (after == samples.end()) return no_number;
    const double next = after->values[value];
    if (after->stamp == stamp) return next;
    if (after == samples.begin()) return no_number;
    const Sample& before = *(after - 1);
    const double share = static_cast<double>(stamp - before.stamp) /
                         static_cast<double>(after->stamp - before.stamp);
    return before.values[value] + share * (next - before.values[value]);
  }
};

[[nodiscard]] std::string storage_of(const std::string& bag) {
  const std::string extension = std::filesystem::path(bag).extension().string();
  if (extension == ".mcap") return "mcap";
  if (extension == ".db3") return "sqlite3";
  return {};  // its metadata.yaml says it
}

class Bag {
 public:
  explicit Bag(std::string path) : path_(std::move(path)) {}

  void open() {
    namespace fs = std::filesystem;
    if (!fs::exists(path_)) refuse(path_, "there is no such bag", "check the path");
    if (fs::is_directory(path_) && !fs::exists(fs::path(path_) / "metadata.yaml"))
      refuse(path_, "the bag has no metadata.yaml, as after a recording that was killed",
             "write it with `ros2 bag reindex " + path_ + "`, or name the file in it");
    if (std::getenv("AMENT_PREFIX_PATH") == nullptr)
      refuse(path_, "rosbag2 does not find its plugins without ROS 2's environment",
             "source it: source /opt/ros/$ROS_DISTRO/setup.bash");
    try {
      reader_ = std::make_unique<rosbag2_cpp::Reader>();
      rosbag2_storage::StorageOptions storage;
      storage.uri = path_;
      if (fs::is_regular_file(path_)) storage.storage_id = storage_of(path_);
      reader_->open(storage);
    } catch (const std::exception& error) {
      refuse(path_, "cannot be opened as a rosbag2 bag: " + text::shortened(error.what()),
             "look with `ros2 bag info " + path_ + "` whether it is whole, and that " +
                 "rosbag2_storage_mcap and rosbag2_storage_sqlite3 are installed");
    }
    remark_on_open_files();
    if (const std::string format = reader_->get_metadata().compression_format; !format.empty())
      refuse(path_, "is compressed (" + format + ")",
             "write it without compression with `ros2 bag convert`");
  }

  /// Takes that topic, or, where it is empty, /joint_states or the only one there is.
  void choose(std::string topic) {
    std::vector<std::string> topics;
    for (const auto& candidate : reader_->get_all_topics_and_types())
      if (candidate.type == "sensor_msgs/msg/JointState") topics.push_back(candidate.name);
    std::sort(topics.begin(), topics.end());
    const auto has = [&](const std::string& name) {
      return std::find(topics.begin(), topics.end(), name) != topics.end();
    };
    if (topics.empty())
      refuse(path_, "holds no sensor_msgs/JointState",
             "record them: ros2 bag record /joint_states");
    const std::string all = text::quoted_list(topics, ", ", 8);
    if (!topic.empty() && !has(topic))
      refuse(path_, "has no joint states on '" + topic + "'", "there are " + all);
    if (topic.empty()) {
      topic = has("/joint_states") ? "/joint_states" : topics.front();
      if (topics.size() > 1 && topic != "/joint_states")
        refuse(path_, "has joint states on " + all,
               "take one: ros2 run realtime_dynamics bag_to_csv " + path_ + " " + topic +
                   " > log.csv");
      if (topics.size() > 1) remark("of the topics " + all + ", " + topic + " was taken");
    }
    rosbag2_storage::StorageFilter filter;
    filter.topics = {topic};
    reader_->set_filter(filter);
    topic_ = topic;
  }

  [[nodiscard]] std::vector<Publisher> read() {
    std::map<std::vector<std::string>, Publisher> by_joints;
    const rclcpp::Serialization<JointState> serialization;
    JointState message;
    std::size_t numbers = 0;
    try {
      while (reader_->has_next()) {
        const auto stored = reader_->read_next();
        const rclcpp::SerializedMessage bytes(*stored->serialized_data);
        serialization.deserialize_message(&bytes, &message);
        if (message.name.empty()) continue;
        Publisher& publisher = by_joints[message.name];
        publisher.joints = message.name;
        publisher.samples.push_back(sample(message, stored->recv_timestamp));
        numbers += fields * message.name.size();
        if (numbers > most_numbers || by_joints.size() > most_publishers) break;
      }
    } catch (const std::exception& error) {
      if (by_joints.empty())
        refuse(path_, "cannot be read: " + text::shortened(error.what()),
               "try `ros2 bag info " + path_ + "`");
      remark("the bag breaks off; what is there was taken (" + text::shortened(error.what()) + ")");
    }
    if (numbers > most_numbers)
      refuse(path_, "holds more than " + std::to_string(most_numbers) + " numbers",
             "give a part of it: one to five minutes of varied motion are enough");
    if (by_joints.size() > most_publishers)
      refuse(path_,
             "its messages name more than " + std::to_string(most_publishers) +
                 " different lists of joints",
             "record one robot, whose messages name the same joints each time");
    if (by_joints.empty())
      refuse(path_, "holds no messages with joints on " + topic_,
             "record them while the robot moves: ros2 bag record " + topic_);
    std::vector<Publisher> publishers;
    publishers.reserve(by_joints.size());
    for (auto& [joints, publisher] : by_joints) publishers.push_back(std::move(publisher));
    return publishers;
  }

  /// That with most efforts gives the stamps; the others' joints are found for these.
  void write(std::vector<Publisher> publishers) const {
    std::stable_sort(publishers.begin(), publishers.end(), [](const auto& a, const auto& b) {
      return std::pair(a.count(2), a.count(0)) > std::pair(b.count(2), b.count(0));
    });
    std::vector<Column> chosen;
    std::vector<std::string> joints;
    for (const Publisher& publisher : publishers) add_columns(publisher, chosen, joints);
    const auto reported = [&](std::size_t field) {
      return std::any_of(chosen.begin(), chosen.end(),
                         [&](const Column& c) { return c.value % fields == field; });
    };
    if (!reported(0))
      refuse(path_, "its joint states hold no positions", "record the state of a robot");
    if (!reported(2))
      refuse(path_, "its joint states hold no efforts",
             "the robot's driver has to report them (state interface effort)");

    for (Publisher& other : publishers)
      if (&other != &publishers.front())
        std::stable_sort(other.samples.begin(), other.samples.end(),
                         [](const Sample& a, const Sample& b) { return a.stamp < b.stamp; });
    remark_on_stamps(publishers);
    std::string line = "time";
    for (const Column& column : chosen) line += "," + column.name;
    put(line);
    for (const Sample& sample : publishers.front().samples) {
      line = seconds(sample.stamp);
      for (const Column& column : chosen) {
        const double x = column.publisher == &publishers.front()
                             ? sample.values[column.value]
                             : column.publisher->at(sample.stamp, column.value);
        line += ',';
        if (std::isfinite(x)) line += text::to_text(x);
      }
      put(line);
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("the output cannot be written");
  }

 private:
  struct Column {
    std::string name;
    const Publisher* publisher;
    std::size_t value;
  };

  /// A file of MCAP ends as it begins. rosbag2 takes what there is of one that does not.
  void remark_on_open_files() const {
    namespace fs = std::filesystem;
    const auto look = [](const fs::path& path) {
      if (path.extension() != ".mcap") return;
      std::string end(8, ' ');
      std::ifstream file(path, std::ios::binary);
      file.seekg(-8, std::ios::end);
      file.read(end.data(), 8);
      if (end != "\x89MCAP0\r\n")
        remark(path.string() +
               " was not closed, as where a recording was killed; what is there was taken");
    };
    if (!fs::is_directory(path_)) return look(path_);
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) look(entry.path());
  }

  /// By its header, or when it was recorded where that says nothing.
  [[nodiscard]] static Sample sample(const JointState& message, std::int64_t recorded) {
    const auto& stamp = message.header.stamp;
    const std::int64_t written = std::int64_t{stamp.sec} * 1'000'000'000 + stamp.nanosec;
    Sample sample;
    sample.stamp = written > 0 ? written : recorded;
    const std::vector<double>* const parts[fields] = {&message.position, &message.velocity,
                                                      &message.effort};
    for (std::size_t j = 0; j < message.name.size(); ++j)
      for (const std::vector<double>* part : parts)
        sample.values.push_back(j < part->size() ? (*part)[j] : no_number);
    return sample;
  }

  /// The columns of the joints that no publisher before has given; what is never reported has none.
  void add_columns(const Publisher& publisher, std::vector<Column>& chosen,
                   std::vector<std::string>& joints) const {
    std::vector<std::string> known;
    for (std::size_t j = 0; j < publisher.joints.size(); ++j) {
      const std::string& joint = publisher.joints[j];
      if (std::find(joints.begin(), joints.end(), joint) != joints.end()) {
        known.push_back(joint);
        continue;
      }
      if (joint.find_first_of(",\r\n") != joint.npos)
        refuse(path_, "joint " + text::quoted(joint) + " has a comma or a line's end in its name",
               "rename it");
      joints.push_back(joint);
      for (std::size_t f = 0; f < fields; ++f)
        if (publisher.reports(fields * j + f))
          chosen.push_back({columns[f] + joint, &publisher, fields * j + f});
    }
    if (!known.empty())
      remark(std::to_string(publisher.samples.size()) +
             " messages that list the joints otherwise were " + "not used for " +
             text::quoted_list(known, ", ", 4) + ", which others report more often");
  }

  static void remark_on_stamps(const std::vector<Publisher>& publishers) {
    for (std::size_t p = 1; p < publishers.size(); ++p) {
      const auto stamped = [&](const Sample& s) {
        const auto& own = publishers[p].samples;
        return std::binary_search(own.begin(), own.end(), s, [](const Sample& a, const Sample& b) {
          return a.stamp < b.stamp;
        });
      };
      const auto& leading = publishers.front().samples;
      if (!std::all_of(leading.begin(), leading.end(), stamped))
        remark("joints " + text::quoted_list(publishers[p].joints, ", ", 4) +
               " have stamps of their own and were interpolated at those of " +
               text::quoted_list(publishers.front().joints, ", ", 4));
    }
  }

  /// Exactly, which a double could not say of today's nanoseconds.
  [[nodiscard]] static std::string seconds(std::int64_t stamp) {
    char out[40];
    std::snprintf(out, sizeof out, "%lld.%09lld", static_cast<long long>(stamp / 1'000'000'000),
                  static_cast<long long>(stamp % 1'000'000'000));
    return out;
  }

  static void put(std::string& line) {
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size())
      throw std::runtime_error("the output cannot be written");
  }

  std::string path_;
  std::string topic_;
  std::unique_ptr<rosbag2_cpp::Reader> reader_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: bag_to_csv BAG [TOPIC] > log.csv\n");
    return 2;
  }
  rcutils_logging_set_default_logger_level(RCUTILS_LOG_SEVERITY_FATAL);  // exceptions say it all
  try {
    Bag bag(argv[1]);
    bag.open();
    bag.choose(argc > 2 ? argv[2] : "");
    bag.write(bag.read());
  } catch (const std::exception& error) {
    remark(error.what());
    return 1;
  }
  return 0;
}
