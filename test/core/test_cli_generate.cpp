// SPDX-License-Identifier: Apache-2.0
/// `dynamics generate` as a user calls it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/command.hpp"

namespace {

using support::Outcome;
using support::run_dynamics;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

constexpr const char* panda = " " RD_SOURCE_DIR "/config/robots/panda.urdf ";

TEST(CliGenerate, WritesBothFilesAndSaysWhatIsInThem) {
  const TemporaryDirectory directory;
  const Outcome outcome =
      run_dynamics("generate" + std::string(panda) + "--functions gravity,mass_matrix -o " +
                   directory.path("a/b"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mass_matrix"));
  EXPECT_THAT(outcome.out, HasSubstr(directory.path("a/b/panda_dynamics.hpp")));
  const std::string header = support::read_file(directory.path("a/b/panda_dynamics.hpp"));
  EXPECT_THAT(header, HasSubstr("void gravity(const double* q, double* tau) noexcept;"));
  EXPECT_THAT(header, HasSubstr("panda_joint7"));
  EXPECT_EQ(header.find("inverse_dynamics"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(directory.path("a/b/panda_dynamics.cpp")));
}

TEST(CliGenerate, TakesArgumentsLanguageAndName) {
  const TemporaryDirectory directory;
  const Outcome outcome =
      run_dynamics("generate" + std::string(panda) +
                   "--functions bias --scalar float --language c --name arm --gravity "
                   "--payload panda_link8 --payload panda_link5 -o " +
                   directory.path("."));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(support::read_file(directory.path("arm_dynamics.h")),
              HasSubstr("void arm_bias(const float *q, const float *v, const float *gravity, "
                        "const float *payload1,"));
}

/// Exit code 2 for the command line, 1 for the robot; nothing is written.
TEST(CliGenerate, NamesMistakes) {
  const TemporaryDirectory directory;
  const auto expect_error = [&](const std::string& options, int code, const char* text) {
    const Outcome outcome =
        run_dynamics("generate" + std::string(panda) + options + " -o " + directory.path("out"));
    EXPECT_EQ(outcome.code, code) << options;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(directory.path("out")));
  };
  expect_error("--scalar half", 2, "unknown scalar 'half'; known are double, float, lanes");
  expect_error("--language rust", 2, "unknown language 'rust'; known are c++, c");
  expect_error("--functions gravitation", 1,
               "'gravitation': there is no such function; known are ");
  expect_error("--payload hand", 1, "'hand': there is no such link; moving links are panda_link1");
  expect_error("--link hand", 1, "'hand': there is no such link");
  EXPECT_EQ(run_dynamics("generate no_robot.urdf").code, 1);
  EXPECT_EQ(run_dynamics("generate").code, 2);
}

}  // namespace
