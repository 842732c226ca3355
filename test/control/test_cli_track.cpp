// SPDX-License-Identifier: Apache-2.0
/// `dynamics track`: the figures it is there to show, and what it says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "support/command.hpp"

namespace {

using nlohmann::json;
using support::lines_of;
using support::Outcome;
using support::run_dynamics;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string panda = RD_SOURCE_DIR "/config/robots/panda.urdf";

json track(const std::string& arguments) {
  const Outcome outcome = run_dynamics("track --json " + arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  return json::parse(outcome.out);
}

const json& law(const json& result, const std::string& name) {
  const auto it = std::find_if(result["laws"].begin(), result["laws"].end(),
                               [&](const json& l) { return l["law"] == name; });
  if (it == result["laws"].end()) throw std::runtime_error("no law " + name);
  return *it;
}

class CliTrack : public testing::Test {
 protected:
  support::TemporaryDirectory directory;
  std::string arm = directory.write("arm.urdf", support::two_link_arm);
};

// --- the figures ---------------------------------------------------------------------------------

TEST_F(CliTrack, FeedforwardHasAFiftiethOfTheErrorOfPdAlone) {
  const json result = track(panda);
  ASSERT_EQ(result["joints"].size(), 7U);
  const double ratio = law(result, "feedforward")["pd_over_law"];
  std::printf("exact model: PD %.2e, feed-forward %.2e rad, ratio %.0f\n",
              law(result, "pd")["rms_error"].get<double>(),
              law(result, "feedforward")["rms_error"].get<double>(), ratio);
  EXPECT_GE(ratio, 50.0);
  for (const json& l : result["laws"]) {
    EXPECT_EQ(l["allocations"], 0) << l["law"];
    EXPECT_EQ(l["failure"], nullptr) << l["law"];
    EXPECT_EQ(l["limited_cycles"], 0) << l["law"];
    EXPECT_EQ(l["cycles"], result["cycles"]) << l["law"];
  }
}

TEST_F(CliTrack, FeedforwardHasAnEighthWhereMassesAreTenPercentWrong) {
  for (const char* error : {"10%", "-10%"}) {
    const json result = track(panda + " --laws pd,feedforward --mass-error=" + error);
    const double ratio = law(result, "feedforward")["pd_over_law"];
    std::printf("mass error %s: ratio %.1f\n", error, ratio);
    EXPECT_GE(ratio, 8.0);
  }
}

/// The errors of the table, computed once more from the positions in the file.
TEST_F(CliTrack, CsvHoldsWhatTheTableSays) {
  const std::string file = directory.path("all.csv");
  const json result = track(arm + " --csv " + file);
  const std::vector<std::string> lines = lines_of(support::read_file(file));
  const auto cycles = result["cycles"].get<std::size_t>();
  ASSERT_EQ(lines.size(), 1 + 5 * cycles);
  EXPECT_EQ(lines[0],
            "law,t,compute_us,q_d.shoulder,q_d.elbow,v_d.shoulder,v_d.elbow,a_d.shoulder,"
            "a_d.elbow,q.shoulder,q.elbow,v.shoulder,v.elbow,tau.shoulder,tau.elbow");
  for (const json& l : result["laws"]) {
    double squares = 0.0;
    double peak = 0.0;
    double effort = 0.0;
    std::size_t count = 0;
    for (const std::string& line : lines) {
      std::istringstream cells(line);
      std::string cell;
      std::getline(cells, cell, ',');
      if (cell != l["law"]) continue;
      std::vector<double> x;
      while (std::getline(cells, cell, ',')) x.push_back(std::stod(cell));
      ASSERT_EQ(x.size(), 14U);
      for (const std::size_t j : {2U, 3U}) {
        const double e = x[j] - x[j + 6];
        squares += e * e;
        peak = std::max(peak, std::abs(e));
        effort = std::max(effort, std::abs(x[j + 10]));
      }
      ++count;
    }
    ASSERT_EQ(count, cycles);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(2 * cycles)), l["rms_error"], 1e-12);
    EXPECT_NEAR(peak, l["peak_error"], 1e-12);
    EXPECT_NEAR(effort, l["peak_effort"], 1e-12);
  }
}

// --- what the robot has and the model has not ----------------------------------------------------

TEST_F(CliTrack, EveryDifferenceHurts) {
  const double exact = law(track(arm + " --laws feedforward"), "feedforward")["rms_error"];
  for (const char* difference :
       {"--mass-error 5%", "--mass-error lower=20%", "--friction-error 50%",
        "--friction-error shoulder=50%", "--payload-unknown tool,0.5,0,0,0", "--noise 1e-4,1e-2",
        "--quantisation 1e-2", "--delay 4", "--saturation 60%", "--saturation 20,20",
        "--estimate-velocity --noise 1e-4"}) {
    const std::string arguments = arm + " --laws feedforward " + difference;
    const double worse = law(track(arguments), "feedforward")["rms_error"];
    EXPECT_GT(worse, 1.2 * exact) << difference;
  }
}

TEST_F(CliTrack, ALoadThatIsKnownDoesNotHurt) {
  const std::string load = "tool,0.5,0.01,0,0.02";
  const auto rms = [&](const std::string& options) {
    return law(track(arm + " --laws feedforward --travel 1.5 --p 300,150 --d 30,15 " + options),
               "feedforward")["rms_error"]
        .get<double>();
  };
  EXPECT_LT(rms("--payload " + load), 1.5 * rms(""));
  EXPECT_GT(rms("--payload-unknown " + load), 10.0 * rms(""));
  // Half of it known and half not is half the surprise.
  const double half =
      rms("--payload tool,0.25,0.01,0,0.02 --payload-unknown tool,0.25,0.01,0,0.02");
  EXPECT_NEAR(half / rms("--payload-unknown " + load), 0.5, 0.05);
}

TEST_F(CliTrack, NoiseFollowsTheSeed) {
  const auto rms = [&](const char* seed) {
    return law(track(arm + " --laws pd --noise 1e-3 --seed " + seed), "pd")["rms_error"]
        .get<double>();
  };
  EXPECT_EQ(rms("4"), rms("4"));
  EXPECT_NE(rms("4"), rms("5"));
}

// --- trajectories --------------------------------------------------------------------------------

TEST_F(CliTrack, FollowsWaypoints) {
  const std::string file =
      directory.write("way.csv", "t,elbow,shoulder\n0,0.5,0\n1,1,-0.5\n2,0,0.3\n");
  const std::string csv = directory.path("out.csv");
  const json result = track(arm + " --laws feedforward --trajectory " + file + " --csv " + csv);
  EXPECT_EQ(result["duration"], 2.0);
  EXPECT_EQ(result["cycles"], 2001);
  const std::vector<std::string> lines = lines_of(support::read_file(csv));
  EXPECT_THAT(lines[1001], testing::MatchesRegex("feedforward,1,[0-9.]+,-0\\.5,1,.*"));
}

TEST_F(CliTrack, StaysInsideTheLimitsByItself) {
  const std::string csv = directory.path("out.csv");
  for (const char* trajectory : {"cycloid", "quintic"}) {
    const json result =
        track(panda + " --laws feedforward --trajectory " + trajectory + " --csv " + csv);
    // joint 4 of the Panda: positions from -3.0718 to -0.0698, 2.175 rad/s
    double low = 0.0;
    double high = -10.0;
    double fastest = 0.0;
    const std::vector<std::string> lines = lines_of(support::read_file(csv));
    for (std::size_t i = 1; i < lines.size(); ++i) {
      std::istringstream cells(lines[i]);
      std::string cell;
      std::vector<std::string> x;
      while (std::getline(cells, cell, ',')) x.push_back(cell);
      low = std::min(low, std::stod(x[6]));
      high = std::max(high, std::stod(x[6]));
      fastest = std::max(fastest, std::abs(std::stod(x[13])));
    }
    EXPECT_GT(low, -3.0718) << trajectory;
    EXPECT_LT(high, -0.0698) << trajectory;
    EXPECT_GT(high - low, 1.0) << trajectory;
    EXPECT_LE(fastest, 0.7 * 2.175 + 1e-9) << trajectory;
    EXPECT_LT(law(result, "feedforward")["share_of_effort_limit"], 0.85) << trajectory;
  }
}

TEST_F(CliTrack, GoesWhereItIsTold) {
  const std::string csv = directory.path("out.csv");
  const json result = track(arm + " --from 0,0 --to 0.4,-0.2 --travel 1 --pause 0.5 --repeat 2 " +
                            "--laws feedforward --rate 500 --csv " + csv);
  EXPECT_EQ(result["duration"], 6.0);
  EXPECT_EQ(result["cycles"], 3001);
  const std::vector<std::string> lines = lines_of(support::read_file(csv));
  EXPECT_THAT(lines[1 + 625], HasSubstr(",0.4,-0.2,0,"));   // at 1.25 s, resting there
  EXPECT_THAT(lines[1 + 2125], HasSubstr(",0.4,-0.2,0,"));  // and once more
}

// --- what it says --------------------------------------------------------------------------------

TEST_F(CliTrack, PrintsATable) {
  const Outcome outcome = run_dynamics("track " + arm);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no progress bar where nobody watches
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("  PD  "), HasSubstr("  PD + gravity  "),
                                 HasSubstr("  PD + feed-forward  "),
                                 HasSubstr("  computed torque  "), HasSubstr("  passivity  ")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("p99.9"), HasSubstr("allocations"),
                                 HasSubstr("exact model"), HasSubstr("Feed-forward has 1/")));
}

TEST_F(CliTrack, KeepsTimeAndSaysWhatItGot) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      run_dynamics("track --realtime --laws pd --travel 0.5 --pause 0 --rate 200 " + arm);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GE(took.count(), 1.0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("SCHED_FIFO"), HasSubstr("memory"),
                                 HasSubstr("woke up late"), HasSubstr("beats missed")));
}

TEST_F(CliTrack, TellsOfALawThatFails) {
  const Outcome outcome =
      run_dynamics("track --laws pd --p 1e9 --d 0 --no-effort-limits --json " + arm);
  EXPECT_EQ(outcome.code, 1);
  const json result = json::parse(outcome.out);
  EXPECT_THAT(result["laws"][0]["failure"].get<std::string>(), HasSubstr("at t ="));
}

TEST_F(CliTrack, TellsOfATrajectoryThatTheDrivesCannotFollow) {
  const Outcome outcome = run_dynamics("track --laws feedforward --payload tool,20,0,0,0 " + arm);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("of joint shoulder, whose limit is 40"),
                    HasSubstr("held back by effort limits"), HasSubstr("does not follow: off by")));
}

TEST_F(CliTrack, TellsOfALoopThatIsTooSlow) {
  const Outcome outcome = run_dynamics("track --rate 50 --laws feedforward,computed_torque " +
                                       std::string(RD_SOURCE_DIR) + "/config/robots/planar3r.yaml");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("! PD + feed-forward: does not follow: off by"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("computed torque: does not")));
}

TEST_F(CliTrack, ExplainsMistakes) {
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  for (const Case& c : {
           Case{"--mass-error 10", 2, "in percent"},
           Case{"--mass-error nose=10%", 2, "the robot has no 'nose'"},
           Case{"--mass-error=-200%", 2, "less than nothing"},
           Case{"--laws pid", 2, "unknown law 'pid'"},
           Case{"--laws pd,pd", 2, "named twice"},
           Case{"--rate 0", 2, "--rate has to be a positive number"},
           Case{"--substeps 0", 2, "--substeps"},
           Case{"--repeat 0", 2, "--repeat"},
           Case{"--speed 0%", 2, "--speed"},
           Case{"--delay -1", 2, "--delay"},
           Case{"--noise 1,2,3", 2, "position,velocity"},
           Case{"--p 1,2,3", 2, "one for each of the 2 joints"},
           Case{"--from 1", 2, "instead of 2"},
           Case{"--rate 1e9", 2, "ten million cycles"},
           Case{"--loops x.yaml", 2, "trees only"},
           Case{"--floating-base", 1, "no drive for each"},
           Case{"--joints ''  --locked shoulder=0 --locked elbow=0", 1, "no joint moves"},
           Case{"--trajectory missing.csv", 1, "missing.csv: cannot be read"},
           Case{"--payload-unknown nose,1,0,0,0", 1, "there is no such link"},
           Case{"--csv /nonexistent/all.csv", 1, "cannot be written"},
           Case{"--report /proc/nowhere", 1, "cannot be written"},
       }) {
    const Outcome outcome = run_dynamics("track " + arm + " " + c.arguments);
    EXPECT_EQ(outcome.code, c.code) << c.arguments;
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << c.arguments;
  }
}

TEST_F(CliTrack, RefusesAnEffortLimitOfZero) {
  std::string text = support::two_link_arm;
  text.replace(text.find("effort=\"40\""), 11, "effort=\"0\"");
  const std::string file = directory.write("limp.urdf", text);
  const Outcome outcome = run_dynamics("track " + file);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("'shoulder'"), HasSubstr("--no-effort-limits")));
  EXPECT_EQ(run_dynamics("track --no-effort-limits --laws pd " + file).code, 0);
}

}  // namespace
