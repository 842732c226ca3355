// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "support/command.hpp"

namespace {

using support::Outcome;
using support::run_dynamics;
using testing::HasSubstr;

constexpr double g = 9.81;

/// Comma-separated values with a heading, by column.
struct Table {
  std::vector<std::string> heading;
  std::map<std::string, std::vector<double>> column;

  explicit Table(const std::string& text) {
    const auto lines = support::lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::istringstream cells(lines[i]);
      std::size_t j = 0;
      for (std::string cell; std::getline(cells, cell, ','); ++j) {
        if (i == 0) {
          heading.push_back(cell);
        } else {
          column[heading.at(j)].push_back(std::stod(cell));
        }
      }
      EXPECT_EQ(j, heading.size()) << lines[i];
    }
  }
  const std::vector<double>& operator[](const std::string& name) const { return column.at(name); }
};

const std::vector<std::string> integrators = {"rkf45", "dopri5", "abm", "rk4",
                                              "semi_implicit_euler"};

class CliSimulate : public testing::Test {
 protected:
  static Table simulate(const std::string& arguments) {
    const Outcome outcome = run_dynamics("simulate " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Table(outcome.out);
  }

  support::TemporaryDirectory files;
  std::string arm = files.write("arm.urdf", support::two_link_arm);
  std::string gripper = files.write("gripper.urdf", support::mimic_gripper);
  std::string four_bar = files.write("four_bar.urdf", support::parallelogram) + " --loops " +
                         files.write("four_bar.yaml", support::parallelogram_loops);
};

TEST_F(CliSimulate, AMassFallsAlongAParabola) {
  // 1 kg falls and lifts nothing; its follower of 3 kg moves up twice as far: 13 q̈ = (6 − 1) g.
  for (const std::string& integrator : integrators) {
    SCOPED_TRACE(integrator);
    const Table table =
        simulate(gripper + " --duration 0.5 --interval 0.1 --integrator " + integrator);
    EXPECT_THAT(table.heading, testing::ElementsAre("t", "q.left_slide", "v.left_slide"));
    ASSERT_EQ(table["t"].size(), 6U);
    // The first order of semi-implicit Euler is off by ½ a dt t.
    const double tolerance = integrator == "semi_implicit_euler" ? 1.1e-3 : 1e-12;
    for (std::size_t i = 0; i < 6; ++i) {
      const double t = table["t"][i];
      EXPECT_NEAR(t, 0.1 * static_cast<double>(i), 1e-15);
      EXPECT_NEAR(table["q.left_slide"][i], 0.5 * 5.0 * g / 13.0 * t * t, tolerance);
      EXPECT_NEAR(table["v.left_slide"][i], 5.0 * g / 13.0 * t, 1e-12);
    }
  }
}

TEST_F(CliSimulate, FreeFallKeepsItsEnergy) {
  const std::map<std::string, double> tolerance = {{"rkf45", 1e-7},
                                                   {"dopri5", 1e-7},
                                                   {"abm", 1e-7},
                                                   {"rk4", 1e-6},
                                                   {"semi_implicit_euler", 0.5}};
  for (const std::string& integrator : integrators) {
    SCOPED_TRACE(integrator);
    const Table table = simulate(arm +
                                 " --no-friction --q0 -0.5,0.3 --duration 2 --columns energy "
                                 "--integrator " +
                                 integrator);
    EXPECT_THAT(table.heading, testing::ElementsAre("t", "energy.kinetic", "energy.potential"));
    ASSERT_EQ(table["t"].size(), 201U);
    const double start = table["energy.potential"][0];
    double most = 0.0;
    for (std::size_t i = 0; i < 201; ++i) {
      most = std::max(most, table["energy.kinetic"][i]);
      EXPECT_NEAR(table["energy.kinetic"][i] + table["energy.potential"][i], start,
                  tolerance.at(integrator));
    }
    EXPECT_GT(most, 10.0);  // it moved
  }
}

TEST_F(CliSimulate, MethodsAgree) {
  const std::string options = arm + " --q0 -0.5,0.3 --duration 0.5 --interval 0.5 --method ";
  const double expected = simulate(options + "cholesky")["q.elbow"][1];
  for (const std::string method : {"articulated_body", "udut", "gibbs_appell"})
    EXPECT_NEAR(simulate(options + method)["q.elbow"][1], expected, 1e-9) << method;
}

TEST_F(CliSimulate, FrictionSlowsDown) {
  const std::string options =
      gripper + " --gravity 0,0,0 --v0 1 --damping left_slide=13 --interval 0.25";
  const Table table = simulate(options);  // 13 v̇ = −13 v
  for (std::size_t i = 0; i < table["t"].size(); ++i)
    EXPECT_NEAR(table["v.left_slide"][i], std::exp(-table["t"][i]), 1e-7);
  EXPECT_NEAR(simulate(options + " --no-friction")["v.left_slide"].back(), 1.0, 1e-12);
}

TEST_F(CliSimulate, TorqueFileIsLinearInBetween) {
  const std::string weightless = gripper + " --gravity 0,0,0 --columns q,tau,a --duration 2 ";
  // 13 q̈ = 78 t gives q = t³; after the last line the effort stays.
  for (const std::string text : {"0,0\n1,78\n", "t,left_slide\n0,0\n1,78\n",
                                 "t,tau.left_slide\n# ramp\n0,0\n0.25,19.5\n1,78\n"}) {
    const Table table = simulate(weightless + "--torque " + files.write("ramp.csv", text));
    EXPECT_NEAR(table["q.left_slide"][50], 0.125, 1e-8);
    EXPECT_NEAR(table["tau.left_slide"][50], 39.0, 1e-12);
    EXPECT_NEAR(table["a.left_slide"][50], 3.0, 1e-12);
    EXPECT_NEAR(table["q.left_slide"][100], 1.0, 1e-8);
    EXPECT_NEAR(table["q.left_slide"][200], 1.0 + 3.0 + 0.5 * 6.0, 1e-7);
  }
}

TEST_F(CliSimulate, TorqueFileByHeading) {
  const Table table = simulate(arm + " --columns tau --duration 0.01 --torque " +
                               files.write("tau.csv", "t,tau.elbow,tau.shoulder\n0,1,2\n1,1,2\n"));
  EXPECT_EQ(table["tau.shoulder"][0], 2.0);
  EXPECT_EQ(table["tau.elbow"][0], 1.0);
}

TEST_F(CliSimulate, FollowsACycloidToItsGoal) {
  const Table table =
      simulate(arm +
               " --q0 0.1,0.2 --goal 1.1,-0.8 --travel 1 --duration 1.25 --interval 0.25 "
               "--tolerance 1e-10");
  // Saha 2001, Eq. 18: half way at half time, (1/4 − 1/2π) of the way at a quarter; friction of the
  // shoulder is made up for.
  const double quarter = 0.25 - 0.5 / std::acos(-1.0);
  const std::vector<double> way = {0.0, quarter, 0.5, 1.0 - quarter, 1.0, 1.0};
  ASSERT_EQ(table["t"].size(), way.size());
  for (std::size_t i = 0; i < way.size(); ++i) {
    EXPECT_NEAR(table["q.shoulder"][i], 0.1 + way[i], 1e-7);
    EXPECT_NEAR(table["q.elbow"][i], 0.2 - way[i], 1e-7);
  }
}

TEST_F(CliSimulate, FollowsWaypoints) {
  const Table table =
      simulate(arm + " --duration 1 --interval 0.5 --tolerance 1e-10 --trajectory " +
               files.write("way.csv", "t,elbow,shoulder\n0,0.2,0.1\n0.5,0.6,0.3\n1,0.2,-0.4\n"));
  EXPECT_EQ(table["q.shoulder"][0], 0.1);
  EXPECT_NEAR(table["q.shoulder"][1], 0.3, 1e-7);
  EXPECT_NEAR(table["q.elbow"][1], 0.6, 1e-7);
  EXPECT_NEAR(table["q.shoulder"][2], -0.4, 1e-7);
}

TEST_F(CliSimulate, ClosedLoopsStayClosed) {
  const Table table = simulate(four_bar + " --q0 0.3,-0.31,0.29 --duration 2 --columns q,energy");
  double farthest = 0.0;
  for (std::size_t i = 0; i < table["t"].size(); ++i) {
    EXPECT_NEAR(table["q.coupler_pin"][i], -table["q.crank_pin"][i], 1e-6);
    EXPECT_NEAR(table["q.rocker_pin"][i], table["q.crank_pin"][i], 1e-6);
    EXPECT_NEAR(table["energy.kinetic"][i] + table["energy.potential"][i],
                table["energy.potential"][0], 1e-5);
    farthest = std::max(farthest, table["q.crank_pin"][i]);
  }
  EXPECT_GT(farthest, 2.5);  // swings through to the mirror image, π − 0.3
}

TEST_F(CliSimulate, FloatingJointsHaveNamesForAllTheirCoordinates) {
  std::string text = support::two_link_arm;
  text.replace(text.find("<link name=\"base\"/>"), 19,
               "<link name=\"base\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" ixy=\"0\" "
               "ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/></inertial></link>");
  const std::string satellite = files.write("satellite.urdf", text) + " --floating-base";
  const Table table = simulate(satellite + " --duration 0.1 --interval 0.1");
  EXPECT_THAT(
      table.heading,
      testing::ElementsAre("t", "q.floating_base.x", "q.floating_base.y", "q.floating_base.z",
                           "q.floating_base.qx", "q.floating_base.qy", "q.floating_base.qz",
                           "q.floating_base.qw", "q.shoulder", "q.elbow", "v.floating_base.wx",
                           "v.floating_base.wy", "v.floating_base.wz", "v.floating_base.vx",
                           "v.floating_base.vy", "v.floating_base.vz", "v.shoulder", "v.elbow"));
  EXPECT_NEAR(table["q.floating_base.z"][1], -0.5 * g * 0.01, 1e-9);
  EXPECT_EQ(run_dynamics("simulate " + satellite + " --goal 0,0,0,0,0,0,1,1,1").code, 1);
  EXPECT_EQ(run_dynamics("simulate " + satellite + " --q0 0,0,0,0,0,0,0,1,1").code, 2);
}

TEST_F(CliSimulate, LastLineIsTheDuration) {
  for (const std::string& integrator : integrators) {
    const Table table =
        simulate(gripper + " --duration 0.25 --interval 0.1 --integrator " + integrator);
    EXPECT_THAT(table["t"], testing::ElementsAre(0.0, 0.1, 0.2, 0.25)) << integrator;
  }
}

TEST_F(CliSimulate, WritesAFile) {
  const std::string csv = files.path("out.csv");
  const Outcome outcome = run_dynamics("simulate " + gripper + " --output " + csv);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(support::read_file(csv), run_dynamics("simulate " + gripper).out);
  EXPECT_EQ(run_dynamics("simulate " + gripper + " --output " + files.path("no/out.csv")).code, 1);
  EXPECT_EQ(run_dynamics("simulate " + gripper + " --output /dev/full").code, 1);
}

TEST_F(CliSimulate, NoStepIsLongerThanTheInterval) {
  for (const std::string& integrator : integrators) {
    const std::string how = gripper + " --duration 0.02 --interval 0.01 --integrator " + integrator;
    const Table coarse = simulate(how + " --step 1e7");
    const Table fine = simulate(how + " --step 0.01");
    EXPECT_GT(coarse["q.left_slide"].back(), 0.0) << integrator;
    EXPECT_NEAR(coarse["q.left_slide"].back(), fine["q.left_slide"].back(), 1e-9) << integrator;
  }
}

TEST_F(CliSimulate, CountsItsSteps) {
  const Outcome outcome =
      run_dynamics("simulate " + gripper + " --integrator rk4 --step 0.01 --statistics");
  EXPECT_EQ(outcome.err, "100 steps, 0 rejected, 400 evaluations\n");
}

TEST_F(CliSimulate, EndsWhereTheMassMatrixIsSingular) {
  std::string text = support::two_link_arm;
  text.replace(text.find("<mass value=\"1.5\"/>"), 19, "<mass value=\"0\"/>");
  const std::string massless = files.write("massless.urdf", text);
  for (const std::string& integrator : integrators) {
    const Outcome outcome = run_dynamics("simulate " + massless + " --integrator " + integrator);
    EXPECT_EQ(outcome.code, 1) << integrator;
    EXPECT_THAT(outcome.err, HasSubstr("singular")) << integrator;
  }
}

TEST_F(CliSimulate, RefusesWhatMakesNoSense) {
  const std::string table = files.write("table.csv", "0,0\n1,78\n");
  for (const std::string& options :
       {std::string("--duration 0"), std::string("--duration x"), std::string("--duration inf"),
        std::string("--interval -1"), std::string("--step 0"), std::string("--tolerance nan"),
        std::string("--integrator euler"), std::string("--q0 1,2"), std::string("--v0 x"),
        std::string("--goal 1,2"), std::string("--columns q,x"), std::string("--method x"),
        std::string("--travel 1"), std::string("--stabilisation -1"),
        "--goal 1 --torque " + table}) {
    const Outcome outcome = run_dynamics("simulate " + gripper + " " + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_EQ(outcome.out, "") << options;
    EXPECT_THAT(outcome.err, HasSubstr("--help")) << options;
  }
  for (const std::string& options :
       {"--torque " + files.path("absent"), "--torque " + files.path(""),
        "--torque " + files.write("two.csv", "0,0,0\n1,1,1\n"),
        "--torque " + files.write("name.csv", "t,right_slide\n0,0\n1,1\n"),
        "--trajectory " + files.write("one.csv", "0,0\n"), "--loops " + files.path("absent"),
        std::string("--method udut")}) {
    const Outcome outcome = run_dynamics("simulate " + gripper + " " + options);
    EXPECT_EQ(outcome.code, 1) << options;
    EXPECT_EQ(support::lines_of(outcome.err).size(), 1U) << options << '\n' << outcome.err;
  }
}

/// What the command writes to a terminal on stderr.
std::string on_terminal(const std::vector<std::string>& arguments) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
  const int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const pid_t child = fork();
  if (child == 0) {
    dup2(slave, STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    execv(RD_DYNAMICS_EXE, argv.data());
    _exit(127);
  }
  close(slave);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  return text;
}

TEST_F(CliSimulate, ProgressBarOnATerminal) {
  const std::string text =
      on_terminal({"dynamics", "simulate", gripper, "--output", files.path("out.csv")});
  EXPECT_THAT(text, HasSubstr("] 50 %"));
  EXPECT_THAT(text, HasSubstr("] 100 %"));
  EXPECT_THAT(text, testing::EndsWith("\r\x1b[K"));  // and it is wiped away
}

}  // namespace
