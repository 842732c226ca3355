// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"
#include "eval_input.hpp"

namespace dynamics_core::tools {

namespace {

using Record = nlohmann::ordered_json;  ///< an output line, its keys in the order asked for
using Eigen::Index;
using MatrixXd = MatrixX<double>;
using VectorXd = VectorX<double>;
using text::quoted;

/// Computes what was asked for, a record for each line.
class Evaluator {
 public:
  using Quantity = void (Evaluator::*)(const LineValues&, Record&);
  struct Entry {
    const char* name;
    Quantity compute;
  };
  static const std::vector<Entry> quantities;
  static constexpr int defaults = 5;  ///< so many of them are computed unasked

  Evaluator(const Model& model, Dynamics<double>& dynamics, const LoopSet& loops,
            std::optional<Method> method, std::vector<Entry> wanted, int link)
      : model_(model),
        reader_(model, link),
        dynamics_(dynamics),
        method_(method),
        friction_(model),
        loops_(dynamics_.tree(), model, loops),
        wanted_(std::move(wanted)) {
    dynamics_.use(method);
  }

  [[nodiscard]] Record operator()(const std::string& text, std::size_t number) {
    Record out;
    try {
      const nlohmann::json line = LineReader::parse(text);
      if (line.is_object() && line.contains("id")) out["id"] = line["id"];
      const LineValues state = reader_.read(line, dynamics_);
      for (const Entry& entry : wanted_) evaluate(entry, state, out);
    } catch (const LineError& error) {
      add_error(out, error.what());
    }
    if (out.contains("error")) out["line"] = number;
    return out;
  }

 private:
  static void add_error(Record& out, const std::string& message) {
    if (out.contains("error")) {
      out["error"] = out["error"].get<std::string>() + "; " + message;
    } else {
      out["error"] = message;
    }
  }

  /// One quantity that cannot be had does not keep the others back.
  void evaluate(const Entry& entry, const LineValues& state, Record& out) {
    try {
      (this->*entry.compute)(state, out);
    } catch (const LineError& error) {
      add_error(out, std::string(entry.name) + ": " + error.what());
    }
  }

  // --- results -----------------------------------------------------------------------------------

  [[nodiscard]] static Record number(double x) {
    if (!std::isfinite(x)) throw LineError("not finite; the input is too large");
    return x;
  }
  [[nodiscard]] static Record list(const VectorXd& x) {
    Record array = Record::array();
    for (const double element : x) array.push_back(number(element));
    return array;
  }
  [[nodiscard]] static Record vector(const VectorXd& x, const std::vector<int>& places) {
    Record array = Record::array();
    for (const int i : places) array.push_back(number(x[i]));
    return array;
  }
  /// Rows of a matrix whose columns belong to the coordinates.
  [[nodiscard]] static Record rows(const MatrixXd& A, const std::vector<int>& places) {
    Record array = Record::array();
    for (Index i = 0; i < A.rows(); ++i) array.push_back(vector(A.row(i).transpose(), places));
    return array;
  }
  [[nodiscard]] static Record square(const MatrixXd& A, const std::vector<int>& places) {
    Record array = Record::array();
    for (const int i : places) array.push_back(vector(A.row(i).transpose(), places));
    return array;
  }

  void require(Status status) const {
    if (status == Status::ok) return;
    if (status == Status::unsupported_joint) throw LineError(unsupported());
    throw LineError(to_string(status));
  }

  [[nodiscard]] std::string unsupported() const {
    const std::string method = method_ ? to_string(*method_) : "the default method";
    const std::string remedy = "; leave --method out or take another";
    if (!model_.mimics.empty())
      return method + " cannot treat the mimic joint " + quoted(model_.mimics.front().name) +
             remedy;
    for (const JointInfo& joint : model_.joints)
      if (joint.nv > 1)
        return method + " cannot treat the " + to_string(joint.type) + " joint " +
               quoted(joint.name) + remedy;
    return method + " cannot treat a joint of this robot" + remedy;
  }

  void tau(const LineValues& s, Record& out) {
    VectorXd x(model_.nv);
    require(dynamics_.inverse_dynamics(s.q, s.v, s.a, x));
    out["tau"] = vector(x, s.order.v);
  }
  void bias(const LineValues& s, Record& out) {
    VectorXd x(model_.nv);
    require(dynamics_.bias(s.q, s.v, x));
    out["bias"] = vector(x, s.order.v);
  }
  void gravity(const LineValues& s, Record& out) {
    VectorXd x(model_.nv);
    require(dynamics_.gravity(s.q, x));
    out["gravity"] = vector(x, s.order.v);
  }
  void mass_matrix(const LineValues& s, Record& out) {
    MatrixXd M(model_.nv, model_.nv);
    require(dynamics_.mass_matrix(s.q, M));
    out["M"] = square(M, s.order.v);
  }
  void forward_dynamics(const LineValues& s, Record& out) {
    VectorXd x(model_.nv);
    VectorXd lambda(loops_.rows());
    const Status status = loops_.rows() == 0 ? dynamics_.forward_dynamics(s.q, s.v, s.tau, x)
                                             : loops_.null_space(s.q, s.v, s.tau, x, lambda);
    if (status != Status::singular) require(status);
    out["qdd"] = status == Status::singular ? Record(nullptr) : vector(x, s.order.v);
  }
  void coriolis(const LineValues& s, Record& out) {
    MatrixXd C(model_.nv, model_.nv);
    require(dynamics_.coriolis(s.q, s.v, C));
    out["C"] = square(C, s.order.v);
  }
  void inverse_mass_matrix(const LineValues& s, Record& out) {
    MatrixXd A(model_.nv, model_.nv);
    const Status status = dynamics_.inverse_mass_matrix(s.q, A);
    if (status != Status::singular) require(status);
    out["Minv"] = status == Status::singular ? Record(nullptr) : square(A, s.order.v);
  }
  void inverse_dynamics_derivatives(const LineValues& s, Record& out) {
    MatrixXd by_q(model_.nv, model_.nv), by_v = by_q, by_a = by_q;
    require(dynamics_.inverse_dynamics_derivatives(s.q, s.v, s.a, by_q, by_v, by_a));
    out["tau_derivatives"] = {{"q", square(by_q, s.order.v)},
                              {"v", square(by_v, s.order.v)},
                              {"a", square(by_a, s.order.v)}};
  }
  void forward_dynamics_derivatives(const LineValues& s, Record& out) {
    if (loops_.rows() > 0) throw LineError("not for a robot with closed loops; leave --loops out");
    MatrixXd by_q(model_.nv, model_.nv), by_v = by_q, by_tau = by_q;
    const Status status =
        dynamics_.forward_dynamics_derivatives(s.q, s.v, s.tau, by_q, by_v, by_tau);
    if (status != Status::singular) require(status);
    out["qdd_derivatives"] = status == Status::singular
                                 ? Record(nullptr)
                                 : Record{{"q", square(by_q, s.order.v)},
                                          {"v", square(by_v, s.order.v)},
                                          {"tau", square(by_tau, s.order.v)}};
  }
  void jacobian(const LineValues& s, Record& out) {
    MatrixXd J(6, model_.nv);
    require(dynamics_.kinematics().update(s.q));
    require(dynamics_.kinematics().jacobian(s.link, J));
    out["jacobian"] = rows(J, s.order.v);
    out["link"] = model_.links[static_cast<std::size_t>(s.link)].name;
  }
  void energy(const LineValues& s, Record& out) {
    require(dynamics_.kinematics().update(s.q, s.v));
    const Energy<double> E = dynamics_.kinematics().energy();
    out["energy"] = {{"kinetic", number(E.kinetic)}, {"potential", number(E.potential)}};
  }
  void regressor(const LineValues& s, Record& out) {
    const int n = dynamics_.regressor().columns();
    MatrixXd Y(model_.nv, n);
    VectorXd pi(n);
    require(dynamics_.regressor().matrix(s.q, s.v, s.a, Y));
    require(dynamics_.regressor().parameters(pi));
    Record array = Record::array();
    for (const int i : s.order.v) array.push_back(list(Y.row(i).transpose()));
    out["regressor"] = array;
    out["parameters"] = list(pi);
  }
  void friction(const LineValues& s, Record& out) {
    VectorXd x = VectorXd::Zero(model_.nv);
    require(friction_.add(s.v, x));
    out["friction"] = vector(x, s.order.v);
  }

  const Model& model_;
  LineReader reader_;
  Dynamics<double>& dynamics_;
  std::optional<Method> method_;
  Friction<double> friction_;
  Loops<double> loops_;
  std::vector<Entry> wanted_;
};

const std::vector<Evaluator::Entry> Evaluator::quantities = {
    {"tau", &Evaluator::tau},
    {"bias", &Evaluator::bias},
    {"gravity", &Evaluator::gravity},
    {"M", &Evaluator::mass_matrix},
    {"qdd", &Evaluator::forward_dynamics},
    {"C", &Evaluator::coriolis},
    {"Minv", &Evaluator::inverse_mass_matrix},
    {"tau_derivatives", &Evaluator::inverse_dynamics_derivatives},
    {"qdd_derivatives", &Evaluator::forward_dynamics_derivatives},
    {"jacobian", &Evaluator::jacobian},
    {"energy", &Evaluator::energy},
    {"regressor", &Evaluator::regressor},
    {"friction", &Evaluator::friction},
};

struct EvalOptions {
  RobotOptions robot;
  std::string input = "-";
  std::string compute;
  std::string method;
  std::string link;
};

[[nodiscard]] std::string quantity_names() {
  std::string names;
  for (const auto& entry : Evaluator::quantities)
    names += (names.empty() ? "" : ",") + std::string(entry.name);
  return names;
}

[[nodiscard]] std::vector<Evaluator::Entry> wanted_quantities(const std::string& list) {
  const auto& all = Evaluator::quantities;
  if (list.empty()) return {all.begin(), all.begin() + Evaluator::defaults};
  std::vector<Evaluator::Entry> wanted;
  for (const std::string& name : text::split(list)) {
    const auto it =
        std::find_if(all.begin(), all.end(), [&](const auto& e) { return name == e.name; });
    if (it == all.end())
      throw UsageError("--compute: unknown quantity " + quoted(name) + "; known are " +
                       quantity_names());
    wanted.push_back(*it);
  }
  return wanted;
}

/// The link of the Jacobian: the one named, or the tip.
[[nodiscard]] int jacobian_link(const Model& model, const EvalOptions& options) {
  if (!options.link.empty()) {
    const int link = model.find_link(options.link);
    if (link >= 0) return link;
    throw ModelError(options.robot.file, "link " + quoted(options.link), "there is no such link",
                     "`dynamics info` lists the links");
  }
  return tip_link(model);
}

constexpr std::size_t longest_line = std::size_t{10} << 20U;  ///< bytes

/// The next line without its end, cut after longest_line + 1 bytes: a device may never end.
[[nodiscard]] bool read_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  constexpr int end = std::char_traits<char>::eof();
  for (int c = bytes.sbumpc(); c != '\n'; c = bytes.sbumpc()) {
    if (c == end) {
      in.setstate(std::ios::eofbit);
      return !line.empty();
    }
    line += static_cast<char>(c);
    if (line.size() > longest_line) break;
  }
  return true;
}

int evaluate_stream(std::istream& in, const std::string& name, Evaluator& evaluate) {
  std::string line;
  const auto next_line = [&] {
    try {
      return read_line(in, line);
    } catch (const std::ios_base::failure&) {  // of a directory, or a disk that fails
      throw std::runtime_error(name + ": cannot be read to its end");
    }
  };
  for (std::size_t number = 1; next_line(); ++number) {
    if (line.size() > longest_line)
      throw std::runtime_error(name + ": line " + std::to_string(number) +
                               " is longer than 10 MB; write an object on each line");
    const Record out = evaluate(line, number);
    std::cout << out.dump(-1, ' ', false, Record::error_handler_t::replace) << '\n' << std::flush;
    if (!std::cout) return 1;  // nobody reads any more
  }
  return 0;
}

int eval(const EvalOptions& options) {
  const std::vector<Evaluator::Entry> wanted = wanted_quantities(options.compute);
  const std::optional<Method> method = parse_method(options.method);
  const Model model = load_robot(options.robot);
  Dynamics<double> dynamics = make_dynamics(model, options.robot);
  Evaluator evaluate(model, dynamics, load_loops(model, options.robot), method, wanted,
                     jacobian_link(model, options));
  if (options.input == "-") {
    std::ios::sync_with_stdio(false);
    return evaluate_stream(std::cin, "standard input", evaluate);
  }
  std::ifstream file(options.input);
  if (!file) throw std::runtime_error(options.input + ": cannot be opened; check the name");
  return evaluate_stream(file, options.input, evaluate);
}

}  // namespace

Subcommand add_eval(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("eval", "Compute torques, matrices and accelerations of states");
  app->footer(
      "Reads a JSON object a line and writes one a line, in the same order, each at once.\n"
      "In:  q, and optionally v, a, tau, gravity, external, joints, link, id\n"
      "Out: tau, bias, gravity, M and qdd, or what --compute names; error for a bad line\n\n"
      "Example: echo '{\"q\": [0.1, -0.5], \"v\": [1, 0]}' | dynamics eval robot.urdf");
  const auto options = std::make_shared<EvalOptions>();
  add_robot_options(*app, options->robot);
  app->add_option("--input", options->input, "Where the lines come from; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--compute", options->compute, "Quantities to compute, of\n" + quantity_names())
      ->type_name("LIST");
  app->add_option("--method", options->method, method_help())->type_name("NAME");
  app->add_option("--link", options->link,
                  "Link of the Jacobian [the last that the last joint moves]")
      ->type_name("NAME");
  return {app, [options] { return eval(*options); }};
}

}  // namespace dynamics_core::tools
