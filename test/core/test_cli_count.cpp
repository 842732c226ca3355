// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "support/command.hpp"

namespace {

using nlohmann::json;
using support::Outcome;
using support::run_dynamics;
using testing::HasSubstr;

json count(const std::string& arguments) {
  const Outcome outcome = run_dynamics("count --json " + arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out);
}

const json& row_of(const json& table, const std::string& quantity, const std::string& method) {
  for (const json& row : table)
    if (row["quantity"] == quantity && row["method"] == method) return row;
  throw std::runtime_error("no row " + quantity + ", " + method);
}

TEST(CliCount, FormulasMatchTheCountsOfAnArm) {
  const json formulas = count("");
  const json six = count("--joints 6");
  ASSERT_FALSE(formulas.empty());
  for (const json& row : formulas) {
    SCOPED_TRACE(row["quantity"].get<std::string>() + " " + row["method"].get<std::string>());
    const json& arm = row_of(six, row["quantity"], row["method"]);
    EXPECT_EQ(row["at_six"]["multiplications"], arm["multiplications"]);
    EXPECT_EQ(row["at_six"]["additions"], arm["additions"]);
  }
}

TEST(CliCount, GibbsAppellBesideItsPaper) {
  const json row = row_of(count(""), "inverse dynamics", "gibbs_appell");
  // Mata et al. 2002, Table 1: 96n − 101 and 84n − 100.
  EXPECT_EQ(row["published"]["multiplications_at_six"], 96 * 6 - 101);
  EXPECT_EQ(row["published"]["additions_at_six"], 84 * 6 - 100);
  EXPECT_LE(row["at_six"]["multiplications"], row["published"]["multiplications_at_six"]);
}

TEST(CliCount, APendulumTakesFewOperations) {
  // One mass on a rod: τ = m l² q̈ − m g l cos q. Two products with constants, one sum.
  const support::TemporaryDirectory files;
  const std::string pendulum = files.write("arm.urdf", support::two_link_arm) + " --locked elbow=0";
  const json row = row_of(count(pendulum), "inverse dynamics", "newton_euler");
  EXPECT_EQ(row["sincos"], 1);
  EXPECT_LE(row["multiplications"], 4);
  EXPECT_GE(row["multiplications"], 2);
  EXPECT_GE(row["additions"], 1);
}

TEST(CliCount, TablesForPeople) {
  const Outcome formulas = run_dynamics("count");
  EXPECT_EQ(formulas.code, 0);
  EXPECT_THAT(formulas.out, HasSubstr("Mata"));
  EXPECT_THAT(formulas.out, HasSubstr("Saha"));
  const Outcome arm = run_dynamics("count --joints 3");
  EXPECT_EQ(arm.code, 0);
  EXPECT_THAT(arm.out, HasSubstr("gibbs_appell"));
  EXPECT_EQ(support::lines_of(arm.out).size(), count("--joints 3").size() + 1);
}

TEST(CliCount, RefusesWhatMakesNoSense) {
  for (const std::string arguments :
       {"--joints 0", "--joints 65", "--joints x", "--joints 6 robot.urdf"}) {
    const Outcome outcome = run_dynamics("count " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("--help")) << arguments;
  }
  EXPECT_EQ(run_dynamics("count absent.urdf").code, 1);
}

}  // namespace
