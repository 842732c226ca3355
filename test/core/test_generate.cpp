// SPDX-License-Identifier: Apache-2.0
/// Generated code computes what the library computes: compiled as users compile it, in both
/// languages and all scalars, for the robots in config/robots and for random ones.

#include "dynamics_core/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/load.hpp"
#include "support/generated_code.hpp"
#include "support/kinds.hpp"

namespace {

using namespace dynamics_core;
using support::CompiledCode;
using support::Random;
using ::testing::HasSubstr;
using Values = std::vector<std::vector<double>>;  ///< by array

constexpr const char* name = "robot_under_test";

// --- The same by the library ---------------------------------------------------------------------

[[nodiscard]] std::vector<double> rows_of(const Eigen::MatrixXd& A) {
  std::vector<double> out;
  for (Eigen::Index i = 0; i < A.rows(); ++i)
    for (Eigen::Index j = 0; j < A.cols(); ++j) out.push_back(A(i, j));
  return out;
}

/// The library's results for the arguments of a generated function; none where M is singular.
class Reference {
 public:
  Reference(const Model& model, const GenerateOptions& options)
      : robot_(model),
        link_(options.link.empty() ? tip_link(model) : model.find_link(options.link)) {
    for (const std::string& link : options.payload_links)
      payload_links_.push_back(model.find_link(link));
  }

  [[nodiscard]] Values operator()(const GeneratedCode::Function& f, const Values& inputs) {
    const auto vector = [&](const char* array) -> Eigen::VectorXd {
      for (std::size_t i = 0; i < f.inputs.size(); ++i)
        if (f.inputs[i].name == array)
          return Eigen::Map<const Eigen::VectorXd>(inputs[i].data(),
                                                   static_cast<Eigen::Index>(inputs[i].size()));
      return {};
    };
    set_surroundings(f, inputs);
    const int n = robot_.nv();
    const Eigen::VectorXd q = vector("q"), v = vector("v"), a = vector("a"), tau = vector("tau");
    Eigen::VectorXd x(n);
    Eigen::MatrixXd A(n, n), J(6, n), by_q(n, n), by_v(n, n);
    Status status = Status::ok;
    const Eigen::MatrixXd* matrix = &A;
    if (f.name == "inverse_dynamics")
      status = robot_.inverse_dynamics(q, v, a, x);
    else if (f.name == "gravity")
      status = robot_.gravity(q, x);
    else if (f.name == "bias")
      status = robot_.bias(q, v, x);
    else if (f.name == "forward_dynamics")
      status = robot_.forward_dynamics(q, v, tau, x);
    else if (f.name == "mass_matrix")
      status = robot_.mass_matrix(q, A);
    else if (f.name == "inverse_mass_matrix")
      status = robot_.inverse_mass_matrix(q, A);
    else if (f.name == "coriolis")
      status = robot_.coriolis(q, v, A);
    else if (f.name == "inverse_dynamics_derivatives")
      status = robot_.inverse_dynamics_derivatives(q, v, a, by_q, by_v, A);
    else if (f.name == "forward_dynamics_derivatives")
      status = robot_.forward_dynamics_derivatives(q, v, tau, by_q, by_v, A);
    else if (f.name == "jacobian") {
      status = robot_.kinematics().update(q);
      status = merged(status, robot_.kinematics().jacobian(link_, J));
      matrix = &J;
    } else {
      throw std::logic_error("no reference for " + f.name);
    }
    if (status != Status::ok) return {};
    if (f.outputs.size() == 3) return {rows_of(by_q), rows_of(by_v), rows_of(A)};
    const bool effort = f.outputs[0].name == "tau" || f.outputs[0].name == "a";
    return {effort ? std::vector<double>(x.begin(), x.end()) : rows_of(*matrix)};
  }

 private:
  void set_surroundings(const GeneratedCode::Function& f, const Values& inputs) {
    std::size_t payload = 0;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      const std::vector<double>& x = inputs[i];
      Status status = Status::ok;
      if (f.inputs[i].name == "gravity")
        status = robot_.set_gravity({x[0], x[1], x[2]});
      else if (f.inputs[i].name.rfind("payload", 0) == 0)
        status =
            robot_.set_payload(payload_links_.at(payload++),
                               {x[0], {x[1], x[2], x[3]}, {x[4], x[5], x[6], x[7], x[8], x[9]}});
      if (status != Status::ok) throw std::logic_error(to_string(status));
    }
  }

  Dynamics<double> robot_;
  int link_;
  std::vector<int> payload_links_;
};

/// Values for each array of a function's arguments.
[[nodiscard]] Values random_inputs(const GeneratedCode::Function& f, const Model& model,
                                   Random& random) {
  Values out;
  for (const auto& array : f.inputs) {
    std::vector<double> x;
    if (array.name == "q") {
      const Eigen::VectorXd q = random.configuration(model);
      x.assign(q.begin(), q.end());
    } else if (array.name.rfind("payload", 0) == 0) {
      const Inertial load = random.inertial();
      const auto I = Symmetric3<double>::from(load.inertia);
      x = {load.mass, load.com[0], load.com[1], load.com[2], I.xx, I.xy, I.xz, I.yy, I.yz, I.zz};
    } else {
      for (int i = 0; i < array.rows; ++i) x.push_back(random.uniform(-3.0, 3.0));
    }
    out.push_back(x);
  }
  return out;
}

// --- Comparison ----------------------------------------------------------------------------------

template <class Number>
[[nodiscard]] std::vector<std::vector<Number>> cast(const Values& from) {
  std::vector<std::vector<Number>> out;
  for (const auto& x : from) out.emplace_back(x.begin(), x.end());
  return out;
}

/// Elements of all configurations, as the lanes have them.
[[nodiscard]] Values interleaved(const GeneratedCode::Function& f,
                                 const std::vector<Values>& from) {
  Values out;
  for (std::size_t k = 0; k < f.inputs.size(); ++k) {
    const std::string& array = f.inputs[k].name;
    if (array == "gravity" || array.rfind("payload", 0) == 0) {
      out.push_back(from[0][k]);
      continue;
    }
    std::vector<double> x;
    for (std::size_t i = 0; i < from[0][k].size(); ++i)
      for (const Values& configuration : from) x.push_back(configuration[k][i]);
    out.push_back(x);
  }
  return out;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 1e-3;  // what is smaller throughout may be round-off
  for (const double x : expected) scale = std::max(scale, std::abs(x));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * scale) << "element " << i;
}

/// Forward dynamics and inverses amplify round-off by the condition of M.
[[nodiscard]] bool inverts(const std::string& function) {
  return function == "forward_dynamics" || function == "inverse_mass_matrix" ||
         function == "forward_dynamics_derivatives";
}

template <class Number>
void compare_one_by_one(const Model& model, const GenerateOptions& options,
                        const GeneratedCode& code, const CompiledCode& compiled, Random& random) {
  Reference reference(model, options);
  const bool single = sizeof(Number) == sizeof(float);
  for (const auto& f : code.functions) {
    SCOPED_TRACE(f.name);
    if (single && inverts(f.name)) continue;
    for (int trial = 0; trial < 5; ++trial) {
      const Values inputs = random_inputs(f, model, random);
      const Values expected = reference(f, inputs);
      if (expected.empty()) continue;
      std::vector<std::vector<Number>> outputs;
      for (const auto& x : expected) outputs.emplace_back(x.size(), Number(-77));
      compiled.call<Number>(f.name, 1, cast<Number>(inputs), outputs);
      for (std::size_t k = 0; k < expected.size(); ++k)
        expect_near({outputs[k].begin(), outputs[k].end()}, expected[k],
                    single            ? 1e-4
                    : inverts(f.name) ? 1e-7
                                      : 1e-11);
    }
  }
}

/// Eleven configurations: whole blocks of any width, and a rest.
void compare_lanes(const Model& model, const GenerateOptions& options, const GeneratedCode& code,
                   const CompiledCode& compiled, Random& random) {
  Reference reference(model, options);
  for (const auto& f : code.functions) {
    SCOPED_TRACE(f.name);
    for (const std::size_t count : {std::size_t{11}, std::size_t{1}}) {
      std::vector<Values> all;
      for (std::size_t k = 0; k < count; ++k) {
        all.push_back(random_inputs(f, model, random));
        for (std::size_t i = 0; i < f.inputs.size(); ++i)  // these are the same for all
          if (f.inputs[i].name == "gravity" || f.inputs[i].name.rfind("payload", 0) == 0)
            all[k][i] = all[0][i];
      }
      Values outputs;
      for (const auto& array : f.outputs)
        outputs.emplace_back(static_cast<std::size_t>(array.rows * array.columns) * count, -77.0);
      compiled.call<double>(f.name, count, interleaved(f, all), outputs);
      for (std::size_t k = 0; k < count; ++k) {
        const Values expected = reference(f, all[k]);
        for (std::size_t j = 0; j < expected.size(); ++j) {
          std::vector<double> actual;
          for (std::size_t i = k; i < outputs[j].size(); i += count)
            actual.push_back(outputs[j][i]);
          expect_near(actual, expected[j], inverts(f.name) ? 1e-7 : 1e-11);
        }
      }
    }
  }
}

void generate_and_compare(const Model& model, GenerateOptions options, const std::string& flags,
                          unsigned seed) {
  options.name = name;
  const GeneratedCode code = generate(model, options);
  const CompiledCode compiled(code, options, name, flags);
  Random random(seed);
  switch (options.scalar) {
    case GeneratedScalar::double_precision:
      compare_one_by_one<double>(model, options, code, compiled, random);
      return;
    case GeneratedScalar::single_precision:
      compare_one_by_one<float>(model, options, code, compiled, random);
      return;
    case GeneratedScalar::lanes: compare_lanes(model, options, code, compiled, random); return;
  }
}

// --- Robots --------------------------------------------------------------------------------------

[[nodiscard]] std::vector<std::string> shipped_robots() {
  std::vector<std::string> out;
  for (const auto& file : std::filesystem::directory_iterator(RD_SOURCE_DIR "/config/robots"))
    if (file.path().string().find(".loops.") == std::string::npos)
      out.push_back(file.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

class EveryRobot : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Generate, EveryRobot, ::testing::ValuesIn(shipped_robots()),
                         [](const auto& robot) {
                           std::string file = std::filesystem::path(robot.param).filename();
                           std::replace(file.begin(), file.end(), '.', '_');
                           return file;
                         });

TEST_P(EveryRobot, InCpp) { generate_and_compare(load_model(GetParam()), {}, "-O1", 1); }

TEST_P(EveryRobot, InC) {
  GenerateOptions options;
  options.language = GeneratedLanguage::c;
  options.gravity = true;
  generate_and_compare(load_model(GetParam()), options, "-O0", 2);
}

TEST_P(EveryRobot, InSinglePrecision) {
  GenerateOptions options;
  options.language = GeneratedLanguage::c;
  options.scalar = GeneratedScalar::single_precision;
  generate_and_compare(load_model(GetParam()), options, "-O0", 3);
}

TEST_P(EveryRobot, InLanes) {
  GenerateOptions options;
  options.scalar = GeneratedScalar::lanes;
  const Model model = load_model(GetParam());
  options.payload_links = {model.links[static_cast<std::size_t>(tip_link(model))].name};
  generate_and_compare(model, options, "-O0", 4);
}

/// All kinds of joints, in a language and a scalar each, with every argument there is.
class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(Generate, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

[[nodiscard]] GenerateOptions everything(const Model& model) {
  GenerateOptions options;
  options.gravity = true;
  for (const LinkInfo& link : model.links)
    if (link.body >= 0 && options.payload_links.size() < 2)
      options.payload_links.push_back(link.name);
  options.link = model.links.back().name;
  return options;
}

TEST_P(EveryKind, WithAllArguments) {
  const unsigned seed = 7;
  support::Kind kind = GetParam();
  const support::Sample sample(kind, seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  GenerateOptions options = everything(sample.model);
  generate_and_compare(sample.model, options, "-O0", seed);
  options.language = GeneratedLanguage::c;
  options.scalar = GeneratedScalar::lanes;
  generate_and_compare(sample.model, options, "-O0", seed);
  options.scalar = GeneratedScalar::single_precision;
  options.functions = {"gravity", "mass_matrix"};
  generate_and_compare(sample.model, options, "-O0", seed);
}

// --- Lanes of other widths -----------------------------------------------------------------------

TEST(Generate, LanesOfAnyWidth) {
  GenerateOptions options;
  options.scalar = GeneratedScalar::lanes;
  options.functions = {"inverse_dynamics", "jacobian"};
  const Model model = load_model(RD_SOURCE_DIR "/config/robots/ur5e.urdf");
  for (const char* width : {"-DLANES=2", "-DLANES=4", "-DLANES=8", "-DLANES=16"})
    generate_and_compare(model, options, width, 5);
}

// --- What is written -----------------------------------------------------------------------------

[[nodiscard]] Model panda() { return load_model(RD_SOURCE_DIR "/config/robots/panda.urdf"); }

TEST(Generate, WritesTheSameEachTime) {
  GenerateOptions options;
  options.version = "1.2.3";
  const GeneratedCode first = generate(panda(), options);
  (void)generate(load_model(RD_SOURCE_DIR "/config/robots/ur5e.urdf"), options);
  const GeneratedCode second = generate(panda(), options);
  EXPECT_EQ(first.header.text, second.header.text);
  EXPECT_EQ(first.source.text, second.source.text);
  EXPECT_THAT(first.source.text, HasSubstr("1.2.3"));
  EXPECT_THAT(first.source.text, HasSubstr("'panda'"));
  EXPECT_THAT(first.source.text, HasSubstr("multiplications"));
}

TEST(Generate, KeepsWithinAHundredColumns) {
  GenerateOptions options;
  options.scalar = GeneratedScalar::lanes;
  for (const auto& file : {generate(panda(), options).header, generate(panda(), {}).source})
    for (const std::string& line : support::lines_of(file.text))
      EXPECT_LE(line.size(), 100U) << line;
}

/// What a controller without an operating system can compile.
TEST(Generate, CNeedsSineAndCosineAlone) {
  GenerateOptions options;
  options.language = GeneratedLanguage::c;
  const std::string text = generate(panda(), options).source.text;
  for (const char* word : {"sqrt", "malloc", "static double", "stdlib", "memcpy"})
    EXPECT_EQ(text.find(word), std::string::npos) << word;
}

/// An angle beyond the reach of the polynomial, and what is no number.
TEST(Generate, TreatsLargeAnglesAndNaN) {
  const Model model = panda();
  for (const auto scalar : {GeneratedScalar::double_precision, GeneratedScalar::lanes}) {
    GenerateOptions options;
    options.functions = {"gravity"};
    options.name = name;
    options.scalar = scalar;
    const GeneratedCode code = generate(model, options);
    const CompiledCode compiled(code, options, name, "-O2");
    Reference reference(model, options);
    Values outputs = {std::vector<double>(7)};
    const Values far = {{0.1, 2e5, -3e6, 1e9, -1.0, 1e5, 0.2}};
    compiled.call<double>("gravity", 1, far, outputs);
    expect_near(outputs[0], reference(code.functions[0], far)[0], 1e-9);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    compiled.call<double>("gravity", 1, {{0.1, nan, 0.3, 0.4, 0.5, 0.6, 0.7}}, outputs);
    EXPECT_TRUE(std::isnan(outputs[0][1]));
  }
}

// --- Files ---------------------------------------------------------------------------------------

TEST(Generate, WritesBothFilesOrSaysWhyNot) {
  const support::TemporaryDirectory directory;
  GenerateOptions options;
  options.functions = {"gravity"};
  const GeneratedCode code = generate(panda(), options);
  write(code, directory.path("a/b"));
  EXPECT_EQ(support::read_file(directory.path("a/b/panda_dynamics.hpp")), code.header.text);
  EXPECT_EQ(support::read_file(directory.path("a/b/panda_dynamics.cpp")), code.source.text);

  const std::string file = directory.write("file", "");
  EXPECT_THROW(write(code, file), std::runtime_error);
  // Where a file cannot go to its place, nothing else is left.
  std::filesystem::create_directories(directory.path("c/panda_dynamics.cpp"));
  EXPECT_THROW(write(code, directory.path("c")), std::runtime_error);
  int entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(directory.path("c")))
    ++entries;
  EXPECT_EQ(entries, 1);
}

// --- Mistakes ------------------------------------------------------------------------------------

[[nodiscard]] std::string error_of(const GenerateOptions& options) {
  try {
    (void)generate(panda(), options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Generate, NamesWhatThereIsNot) {
  GenerateOptions function, link, payload, fixed, twice;
  function.functions = {"gravity", "mass_matrices"};
  EXPECT_THAT(error_of(function), HasSubstr("'mass_matrices'"));
  EXPECT_THAT(error_of(function), HasSubstr("mass_matrix, "));
  link.link = "hand";
  EXPECT_THAT(error_of(link), HasSubstr("'hand'"));
  EXPECT_THAT(error_of(link), HasSubstr("panda_link8"));
  payload.payload_links = {"tool"};
  EXPECT_THAT(error_of(payload), HasSubstr("'tool'"));
  fixed.payload_links = {"panda_link0"};
  EXPECT_THAT(error_of(fixed), HasSubstr("does not move"));
  twice.payload_links = {"panda_link8", "panda_link8"};
  EXPECT_THAT(error_of(twice), HasSubstr("twice"));
}

/// Names of robots that are none in C.
TEST(Generate, MakesIdentifiers) {
  const auto header = [](const char* robot) {
    Model model = panda();
    model.name = robot;
    GenerateOptions options;
    options.functions = {"jacobian"};
    return generate(model, options).header.name;
  };
  EXPECT_EQ(header("My Arm (2nd)"), "My_Arm_2nd_dynamics.hpp");
  EXPECT_EQ(header("7bot"), "robot_7bot_dynamics.hpp");
  EXPECT_EQ(header("double"), "double_robot_dynamics.hpp");
  EXPECT_EQ(header("\xC3\xA9t\xC3\xA9"), "t_dynamics.hpp");
  EXPECT_EQ(header("---"), "robot_dynamics.hpp");
}

/// Where M is singular everywhere, nothing can invert it, and the message says which function.
TEST(Generate, SaysWhichFunctionTheRobotCannotHave) {
  const Model model = load_urdf_string(R"(<robot name="weightless"><link name="a"/><link name="b"/>
    <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
    </robot>)");
  GenerateOptions options;
  options.functions = {"forward_dynamics"};
  try {
    (void)generate(model, options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("forward_dynamics"));
    EXPECT_THAT(error.what(), HasSubstr("singular"));
  }
}

}  // namespace
