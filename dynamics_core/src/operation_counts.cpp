// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/operation_counts.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <sstream>

#include "dynamics_core/counted_families.hpp"

namespace dynamics_core {

namespace {

using Vector = VectorX<Counted>;
using Matrix = MatrixX<Counted>;

/// The arguments, all of them variables, and room for the results.
struct Problem {
  explicit Problem(const Model& model)
      : robot(model), x(model.nv), A(Matrix::Zero(model.nv, model.nv)) {
    Counted::forget();
    const VectorX<double> neutral = model.neutral();
    q = variables(model.nq, 0.3);
    for (int i = 0; i < model.nq; ++i)
      if (neutral[i] != 0.0) q[i] = Counted::variable(neutral[i]);  // a quaternion's w
    v = variables(model.nv, 0.7);
    a = variables(model.nv, 1.1);
  }
  static Vector variables(int n, double first) {
    Vector u(n);
    for (int i = 0; i < n; ++i) u[i] = Counted::variable(first + 0.1 * i);
    return u;
  }

  Dynamics<Counted> robot;
  Vector q, v, a;
  Vector x;
  Matrix A;
};

enum class Result { vector, matrix, triangle };

struct Entry {
  const char* quantity;
  const char* method;
  Result result;
  Status (*run)(Problem&);
};

const std::array<Entry, 19> entries = {{
    {"inverse dynamics", "newton_euler", Result::vector,
     [](Problem& p) {
       return p.robot.families().newton_euler.inverse_dynamics(p.q, p.v, p.a, p.x);
     }},
    {"inverse dynamics", "denoc", Result::vector,
     [](Problem& p) { return p.robot.families().denoc.inverse_dynamics(p.q, p.v, p.a, p.x); }},
    {"inverse dynamics", "gibbs_appell", Result::vector,
     [](Problem& p) { return p.robot.inverse_dynamics(p.q, p.v, p.a, p.x); }},
    {"bias", "newton_euler", Result::vector,
     [](Problem& p) { return p.robot.families().newton_euler.bias(p.q, p.v, p.x); }},
    {"bias", "gibbs_appell", Result::vector,
     [](Problem& p) { return p.robot.bias(p.q, p.v, p.x); }},
    {"gravity", "newton_euler", Result::vector,
     [](Problem& p) { return p.robot.families().newton_euler.gravity(p.q, p.x); }},
    {"gravity", "gibbs_appell", Result::vector,
     [](Problem& p) { return p.robot.families().gibbs_appell.gravity(p.q, p.x); }},
    {"mass matrix", "composite_body", Result::triangle,
     [](Problem& p) { return p.robot.families().composite_body.mass_matrix(p.q, p.A); }},
    {"mass matrix", "denoc", Result::triangle,
     [](Problem& p) { return p.robot.families().denoc.mass_matrix(p.q, p.A); }},
    {"mass matrix", "gibbs_appell", Result::triangle,
     [](Problem& p) { return p.robot.families().gibbs_appell.mass_matrix(p.q, p.A); }},
    {"convective matrix", "denoc", Result::matrix,
     [](Problem& p) { return p.robot.coriolis(p.q, p.v, p.A); }},
    {"forward dynamics", "articulated_body", Result::vector,
     [](Problem& p) {
       return p.robot.families().articulated_body.forward_dynamics(p.q, p.v, p.a, p.x);
     }},
    {"forward dynamics", "udut", Result::vector,
     [](Problem& p) { return p.robot.families().udut.forward_dynamics(p.q, p.v, p.a, p.x); }},
    {"forward dynamics", "gibbs_appell", Result::vector,
     [](Problem& p) {
       return p.robot.families().gibbs_appell.forward_dynamics(p.q, p.v, p.a, p.x);
     }},
    {"forward dynamics", "cholesky", Result::vector,
     [](Problem& p) { return p.robot.families().cholesky.forward_dynamics(p.q, p.v, p.a, p.x); }},
    {"solution of M q̈ = φ", "udut", Result::vector,
     [](Problem& p) {
       const Status s = p.robot.families().udut.factorize(p.q);
       return s == Status::ok ? p.robot.families().udut.solve(p.a, p.x) : s;
     }},
    {"inverse mass matrix", "cholesky", Result::triangle,
     [](Problem& p) { return p.robot.families().cholesky.inverse_mass_matrix(p.q, p.A); }},
    {"inverse mass matrix", "gibbs_appell", Result::triangle,
     [](Problem& p) { return p.robot.families().gibbs_appell.inverse_mass_matrix(p.q, p.A); }},
    {"inverse mass matrix", "udut", Result::triangle,
     [](Problem& p) { return p.robot.families().udut.inverse_mass_matrix(p.q, p.A); }},
}};

[[nodiscard]] std::vector<Counted> results(const Problem& p, Result kind) {
  std::vector<Counted> out;
  const Eigen::Index n = p.x.size();
  for (Eigen::Index i = 0; i < n; ++i) {
    if (kind == Result::vector) out.push_back(p.x[i]);
    if (kind == Result::vector) continue;
    for (Eigen::Index j = 0; j < (kind == Result::triangle ? i + 1 : n); ++j)
      out.push_back(p.A(i, j));
  }
  return out;
}

[[nodiscard]] std::optional<OperationCount> count(const Model& model, const Entry& entry) {
  Problem problem(model);
  if (entry.run(problem) != Status::ok) return std::nullopt;
  return Counted::count(results(problem, entry.result));
}

// --- What the papers state -----------------------------------------------------------------------

struct Published {
  const char* quantity;
  const char* method;
  const char* source;
  std::vector<long> multiplications, additions;  ///< in sixths of 1, n, n², n³
};

const std::vector<Published>& published_counts() {
  static const std::vector<Published> table = {
      {"inverse dynamics", "gibbs_appell", "Mata 2002, Table 1", {-606, 576}, {-600, 504}},
      {"inverse dynamics", "denoc", "Saha 1999, Table 1", {-264, 720}, {-330, 582}},
      {"bias", "gibbs_appell", "Mata 2002, Table 3", {-648, 576}, {-630, 498}},
      {"mass matrix", "gibbs_appell", "Mata 2002, Table 2", {-294, 117, 69}, {-414, 189, 51}},
      {"mass matrix",
       "composite_body",
       "Walker and Orin, in Mata 2002, Table 2",
       {-162, 336, 72},
       {-336, 402, 42}},
      {"forward dynamics",
       "gibbs_appell",
       "Mata 2002, Table 3",
       {-942, 695, 78, 1},
       {-1044, 683, 60, 1}},
      {"solution of M q̈ = φ", "udut", "Saha 2001, Table I", {-1704, 1146}, {-1950, 1122}},
  };
  return table;
}

[[nodiscard]] std::optional<PublishedCount> find_published(const Entry& entry) {
  const std::string quantity = entry.quantity;
  const std::string method = entry.method;
  if (quantity == "forward dynamics" && method == "articulated_body")
    return PublishedCount{"Featherstone, in Mata 2002, Table 4", {}, {}, 1533, 1415};
  if (quantity == "forward dynamics" && method == "cholesky")
    return PublishedCount{"Walker and Orin, in Mata 2002, Table 4", {}, {}, 1627, 1261};
  for (const Published& p : published_counts()) {
    if (quantity != p.quantity || method != p.method) continue;
    const Formula M(p.multiplications);
    const Formula A(p.additions);
    return PublishedCount{p.source, M, A, static_cast<int>(std::lround(M(6))),
                          static_cast<int>(std::lround(A(6)))};
  }
  return std::nullopt;
}

// --- Formulas ------------------------------------------------------------------------------------

/// A sixth as a decimal where that is short, else as a fraction.
[[nodiscard]] std::string coefficient(long sixths) {
  std::ostringstream out;
  if (sixths % 6 == 0)
    out << sixths / 6;
  else if (sixths % 3 == 0)
    out << sixths / 6 << ".5";
  else if (sixths % 2 == 0)
    out << sixths / 2 << "/3 ";
  else
    out << sixths << "/6 ";
  return out.str();
}

}  // namespace

std::vector<MethodCount> count_operations(const Model& model) {
  std::vector<MethodCount> out;
  for (const Entry& entry : entries)
    if (const auto counted = count(model, entry))
      out.push_back({entry.quantity, entry.method, *counted});
  return out;
}

Model general_arm(int joints) {
  Model model;
  model.name = "general arm";
  model.nq = joints;
  model.nv = joints;
  double seed = 0.0;
  const auto generic = [&seed] {  // between 0.2 and 0.8, no two alike
    seed += 0.6180339887498949;
    seed -= std::floor(seed);
    return 0.2 + 0.6 * seed;
  };
  for (int i = 0; i < joints; ++i) {
    const double alpha = generic();
    const double a = generic();
    const double d = generic();
    const bool first = i == 0;  // the base frame shares its axis and origin
    BodyData b;
    b.parent = i - 1;
    b.dof = i;
    b.q = i;
    b.joint = i;
    b.X = {first ? 1.0 : std::cos(alpha),
           first ? 0.0 : std::sin(alpha),
           first ? 0.0 : a,
           1.0,
           0.0,
           first ? 0.0 : d,
           1.0,
           0.0,
           0.0,
           0.0,
           false};
    LinkInfo link;
    link.name = "link_" + std::to_string(i + 1);
    link.body = i;
    link.inertial.mass = generic();
    for (int r = 0; r < 3; ++r) {
      link.inertial.com[r] = generic();
      link.inertial.inertia(r, r) = 2.0 + generic();
      for (int c = 0; c < r; ++c)
        link.inertial.inertia(r, c) = link.inertial.inertia(c, r) = generic();
    }
    JointInfo joint;
    joint.name = "joint_" + std::to_string(i + 1);
    joint.q = i;
    joint.v = i;
    model.bodies.push_back(b);
    model.links.push_back(link);
    model.joints.push_back(joint);
  }
  return model;
}

std::optional<Formula> Formula::through(const std::vector<int>& values, int first) {
  // Newton's forward differences at n = first: Σ Δᵏ (n−first choose k), k! divides six.
  constexpr std::size_t largest_degree = 3;
  std::vector<long> row(values.begin(), values.end());
  std::vector<long> differences;
  while (differences.size() <= largest_degree + 1) {
    bool zero = true;
    for (const long x : row) zero = zero && x == 0;
    if (zero) break;
    differences.push_back(row.front());
    for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i] = row[i + 1] - row[i];
    row.pop_back();
  }
  if (differences.size() > largest_degree + 1 || row.size() < 2) return std::nullopt;
  std::vector<long> sum(differences.size(), 0);
  std::vector<long> product = {6};  // 6 (n − first)(n − first − 1)… / k!
  for (std::size_t k = 0; k < differences.size(); ++k) {
    for (std::size_t i = 0; i < product.size(); ++i) sum[i] += differences[k] * product[i];
    std::vector<long> next(product.size() + 1, 0);
    const long root = first + static_cast<long>(k);
    for (std::size_t i = 0; i < product.size(); ++i) {
      next[i] -= root * product[i];
      next[i + 1] += product[i];
    }
    for (long& c : next) c /= static_cast<long>(k) + 1;
    product = next;
  }
  return Formula(sum);
}

double Formula::operator()(double n) const noexcept {
  double value = 0.0;
  for (std::size_t i = sixths_.size(); i-- > 0;)
    value = value * n + static_cast<double>(sixths_[i]) / 6.0;
  return value;
}

std::string Formula::text() const {
  static const std::array<const char*, 4> powers = {"", "n", "n²", "n³"};
  std::string out;
  for (std::size_t i = sixths_.size(); i-- > 0;) {
    const long c = sixths_[i];
    if (c == 0) continue;
    const bool one = i > 0 && std::abs(c) == 6;
    if (!out.empty()) out += c < 0 ? " − " : " + ";
    if (out.empty() && c < 0) out += "−";
    std::string number = one ? "" : coefficient(std::abs(c));
    if (i == 0 && !number.empty() && number.back() == ' ') number.pop_back();
    out += number + powers[i];
  }
  return out.empty() ? "0" : out;
}

std::vector<FormulaRow> operation_formulas() {
  constexpr int first = 3;
  constexpr int last = 10;
  std::vector<FormulaRow> out;
  for (const Entry& entry : entries) {
    FormulaRow row;
    row.quantity = entry.quantity;
    row.method = entry.method;
    row.published = find_published(entry);
    std::vector<int> multiplications;
    std::vector<int> additions;
    std::vector<int> divisions;
    for (int n = first; n <= last; ++n) {
      const OperationCount counted = count(general_arm(n), entry).value_or(OperationCount{});
      multiplications.push_back(counted.multiplications);
      additions.push_back(counted.additions);
      divisions.push_back(counted.divisions);
      if (n == 6) row.at_six = counted;
    }
    for (row.from = first; row.from <= 5; ++row.from) {  // short arms may be special
      row.multiplications = Formula::through(multiplications, row.from);
      row.additions = Formula::through(additions, row.from);
      row.divisions = Formula::through(divisions, row.from);
      if (row.multiplications && row.additions && row.divisions) break;
      for (auto* values : {&multiplications, &additions, &divisions})
        values->erase(values->begin());
    }
    out.push_back(row);
  }
  return out;
}

}  // namespace dynamics_core
