// SPDX-License-Identifier: Apache-2.0
#include "code_writer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "dynamics_core/simplification.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::generation {

namespace {

using Node = OperationGraph::Node;
using Operand = OperationGraph::Operand;
using Op = Operation;

/// Compilers take more than linear time for a function.
constexpr std::size_t most_operations_a_function = 2500;
/// Of one statement.
constexpr int most_leaves = 8;
constexpr std::size_t columns = 100;
[[nodiscard]] bool is_c(const Style& style) { return style.language == GeneratedLanguage::c; }
[[nodiscard]] bool has_lanes(const Style& style) { return style.scalar == GeneratedScalar::lanes; }
[[nodiscard]] bool is_float(const Style& style) {
  return style.scalar == GeneratedScalar::single_precision;
}
/// Sines and cosines by a polynomial of the code's own, all at once.
[[nodiscard]] bool has_own_sincos(const Style& style) {
  return has_lanes(style) || (style.scalar == GeneratedScalar::double_precision && !is_c(style));
}
[[nodiscard]] const char* number_type(const Style& style) {
  return is_float(style) ? "float" : "double";
}
/// Of what is computed.
[[nodiscard]] const char* value_type(const Style& style) {
  return has_lanes(style) ? "lanes" : number_type(style);
}
[[nodiscard]] std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}
/// As the user calls it.
[[nodiscard]] std::string public_name(const Style& style, const Recording& function) {
  return is_c(style) ? style.name + "_" + function.name : function.name;
}

template <class Number>
[[nodiscard]] std::string shortest(Number value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string out(buffer.data(), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}
[[nodiscard]] std::string number(const Style& style, double value) {
  return is_float(style) ? shortest(static_cast<float>(value)) + "f" : shortest(value);
}

/// A line of code, broken where it is too long.
[[nodiscard]] std::string wrapped(std::string line, std::size_t indent) {
  std::string out;
  std::string rest = std::string(indent, ' ') + std::move(line);
  while (rest.size() > columns) {
    auto blank = rest.rfind(", ", columns - 1);
    blank =
        blank == std::string::npos || blank < columns / 2 ? rest.rfind(' ', columns) : blank + 1;
    if (blank == std::string::npos || blank <= indent + 4) break;
    out += rest.substr(0, blank) + '\n';
    rest = std::string(indent + 4, ' ') + rest.substr(blank + 1);
  }
  return out + rest + '\n';
}
/// A comment, in as many lines as it takes.
[[nodiscard]] std::string comment(const std::string& text, std::size_t indent = 0) {
  std::string out;
  std::string line;
  const auto flush = [&] {
    out += std::string(indent, ' ') + "//" + line + '\n';
    line.clear();
  };
  for (const std::string& word : text::words(text)) {
    if (indent + 3 + line.size() + word.size() > columns) flush();
    line += ' ' + word;
  }
  flush();
  return out;
}

[[nodiscard]] std::string plural(int n, const char* thing) {
  return std::to_string(n) + ' ' + thing + (n == 1 ? "" : "s");
}
[[nodiscard]] std::string operations(const OperationCount& c) {
  std::string out =
      plural(c.multiplications, "multiplication") + ", " + plural(c.additions, "addition");
  if (c.divisions > 0) out += ", " + plural(c.divisions, "division");
  if (c.square_roots > 0) out += ", " + plural(c.square_roots, "square root");
  if (c.sincos > 0) out += ", " + plural(c.sincos, "sine") + " with cosine";
  return out;
}

/// The type and name of an array as a parameter.
[[nodiscard]] std::string parameter(const Style& style, const Array& array, bool constant,
                                    bool restricted) {
  std::string out = constant ? "const " : "";
  out += number_type(style);
  out += is_c(style) ? " *" : "* ";
  if (restricted) out += is_c(style) ? "restrict " : "__restrict ";
  return out + array.name;
}

[[nodiscard]] std::string parameters(const Style& style, const Recording& function,
                                     bool restricted) {
  std::vector<std::string> all;
  if (has_lanes(style)) all.emplace_back(is_c(style) ? "size_t count" : "std::size_t count");
  for (const Array& array : function.inputs)
    all.push_back(parameter(style, array, true, restricted));
  for (const Array& array : function.outputs)
    all.push_back(parameter(style, array, false, restricted));
  return text::joined(all);
}

[[nodiscard]] std::string declaration(const Style& style, const Recording& function,
                                      bool restricted) {
  return "void " + public_name(style, function) + "(" + parameters(style, function, restricted) +
         ")" + (is_c(style) ? "" : " noexcept");
}

// --- The body of a function ----------------------------------------------------------------------

class Body {
 public:
  Body(const Style& style, const Recording& function)
      : style_(style), function_(function), graph_(function.graph) {
    name_inputs();
    collect_outputs();
    collect_angles();
    choose_statements();
    split();
    give_slots();
  }

  /// Is the array one of the function's own?
  [[nodiscard]] static bool waits(const std::string& array) {
    return array == "w" || array == "sine" || array == "cosine";
  }

  /// Has the array an element for each configuration?
  [[nodiscard]] bool has_configurations(const std::string& name) const {
    const auto& inputs = function_.inputs;
    return !waits(name) && std::none_of(inputs.begin(), inputs.end(), [&](const Array& array) {
      return array.of_robot && array.name == name;
    });
  }

  /// The parts that were too much for one function, before it, and the body itself.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::size_t angles() const { return angles_.size(); }

 private:
  struct Output {
    std::vector<std::string> places;  ///< two of a symmetric matrix
    bool negative;
  };
  struct Part {
    std::vector<std::size_t> nodes;  ///< those with a statement
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void name_inputs();
  void collect_outputs();
  void collect_angles();
  void choose_statements();
  void split();
  void give_slots();

  [[nodiscard]] const Node& node(std::size_t i) const { return graph_.nodes()[i]; }
  template <class F>
  void for_operands(std::size_t i, F f) const {
    const Node& n = node(i);
    const int operands = operand_count(n.operation);
    if (operands > 0) f(n.x);
    if (operands > 1) f(n.y);
    if (operands > 2) f(n.z);
  }
  [[nodiscard]] bool is_leaf(std::size_t i) const {
    return node(i).operation == Op::constant || node(i).operation == Op::input;
  }
  [[nodiscard]] bool is_angle_function(std::size_t i) const {
    return node(i).operation == Op::sine || node(i).operation == Op::cosine;
  }
  /// Calls f with each named value, input or sine that the statement of node i reads.
  template <class F>
  void for_values(std::size_t i, F f) const {
    for_operands(i, [&](Operand x) {
      if (named_[x.node] || is_leaf(x.node) || (own_sincos_ && is_angle_function(x.node)))
        f(x.node);
      else
        for_values(x.node, f);
    });
  }

  [[nodiscard]] std::string element(const std::string& array, int i, const char* lanes) const;
  [[nodiscard]] std::string value(std::size_t i, std::size_t part) const;
  [[nodiscard]] std::string term(Operand x, std::size_t part) const;
  [[nodiscard]] std::string factor(Operand x, std::size_t part) const;
  [[nodiscard]] std::string divisor(Operand x, std::size_t part) const;
  [[nodiscard]] std::string lone(Operand x, std::size_t part) const;
  [[nodiscard]] std::string expression(std::size_t i, std::size_t part) const;
  [[nodiscard]] std::string as_value(std::size_t i, const std::string& text) const;
  [[nodiscard]] std::string statement(std::size_t i, std::size_t part) const;
  [[nodiscard]] std::string stores(std::size_t i, std::size_t part, const std::string& from) const;
  [[nodiscard]] std::string constant_outputs() const;
  [[nodiscard]] std::string angles_text() const;
  [[nodiscard]] std::string unused_inputs() const;
  [[nodiscard]] std::string part_text(std::size_t part) const;
  [[nodiscard]] std::vector<std::string> part_arrays(std::size_t part) const;
  [[nodiscard]] std::string part_name(std::size_t part) const {
    return style_.name + "_" + function_.name + "_" + std::to_string(part + 1);
  }

  const Style& style_;
  const Recording& function_;
  const OperationGraph& graph_;
  const bool own_sincos_ = has_own_sincos(style_);
  std::map<std::size_t, std::string> inputs_;            ///< by node: its text
  std::map<std::size_t, std::string> input_arrays_;      ///< by node: its array
  std::map<std::size_t, std::vector<Output>> outputs_;   ///< by node
  std::map<std::size_t, std::set<std::string>> stored_;  ///< by node: the output arrays
  std::vector<std::size_t> angles_;                      ///< nodes, where sines are our own
  std::map<std::size_t, std::size_t> angle_index_;       ///< by node
  std::vector<int> uses_;
  std::vector<bool> named_;  ///< by node: has it a statement?
  std::vector<Part> parts_;
  std::vector<std::size_t> part_of_;  ///< by node
  std::vector<std::size_t> slot_;     ///< by node: where it waits for later parts
  std::size_t slots_ = 0;
  std::vector<bool> used_in_own_part_;
};

std::string Body::element(const std::string& array, int i, const char* lanes) const {
  const std::string index = std::to_string(i);
  if (!has_lanes(style_)) return array + "[" + index + "]";
  return std::string(lanes) + "(" + array + ", " + index + ")";
}

void Body::name_inputs() {
  auto next = graph_.inputs().begin();
  for (const Array& array : function_.inputs) {
    for (int i = 0; i < array.size(); ++i, ++next) {
      inputs_[*next] = element(array.name, i, array.of_robot ? "SHARED" : "IN");
      input_arrays_[*next] = array.name;
    }
  }
}

void Body::collect_outputs() {
  auto next = graph_.outputs().begin();
  for (const Array& array : function_.outputs) {
    for (int i = 0; i < array.rows; ++i) {
      for (int j = 0; j < (array.symmetric ? i + 1 : array.columns); ++j, ++next) {
        Output output{{element(array.name, i * array.columns + j, "OUT")}, next->negative};
        if (array.symmetric && i != j)
          output.places.push_back(element(array.name, j * array.columns + i, "OUT"));
        outputs_[next->node].push_back(output);
        stored_[next->node].insert(array.name);
      }
    }
  }
}

void Body::collect_angles() {
  if (!own_sincos_) return;
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i)
    if (is_angle_function(i) && angle_index_.emplace(node(i).x.node, angles_.size()).second)
      angles_.push_back(node(i).x.node);
}

/// A result that is used once goes into the expression that uses it, as long as that stays short.
void Body::choose_statements() {
  const std::size_t n = graph_.nodes().size();
  uses_.assign(n, 0);
  named_.assign(n, false);
  std::vector<int> leaves(n, 1);
  for (std::size_t i = 0; i < n; ++i)
    if (!(own_sincos_ && is_angle_function(i)))
      for_operands(i, [&](Operand x) { ++uses_[x.node]; });
  const auto fits = [&](std::size_t i) {
    const Op op = node(i).operation;
    return (op == Op::add || op == Op::multiply) && uses_[i] == 1 && outputs_.count(i) == 0;
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (is_leaf(i) || (own_sincos_ && is_angle_function(i))) continue;
    named_[i] = !fits(i) && (uses_[i] > 0 || outputs_.count(i) > 0);
    // The longest operands get a statement of their own until the rest is short enough.
    for (;;) {
      int sum = 0;
      std::size_t longest = i;
      for_operands(i, [&](Operand x) {
        const bool inside = fits(x.node) && !named_[x.node];
        sum += inside ? leaves[x.node] : 1;
        if (inside && leaves[x.node] > (longest == i ? 1 : leaves[longest])) longest = x.node;
      });
      leaves[i] = sum;
      const Op op = node(i).operation;
      if (longest == i || (sum <= most_leaves && (op == Op::add || op == Op::multiply))) break;
      named_[longest] = true;
    }
  }
}

void Body::split() {
  const std::size_t n = graph_.nodes().size();
  part_of_.assign(n, 0);
  std::size_t operations = 0;
  for (std::size_t i = 0; i < n; ++i) operations += is_leaf(i) ? 0 : 1;
  const std::size_t parts =
      (operations + most_operations_a_function - 1) / most_operations_a_function;
  const std::size_t share = parts < 2 ? operations : (operations + parts - 1) / parts;
  parts_.emplace_back();
  std::size_t done = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (is_leaf(i)) continue;
    ++done;
    if (!named_[i]) continue;
    if (done > share && !parts_.back().nodes.empty()) {
      parts_.emplace_back();
      done = 0;
    }
    part_of_[i] = parts_.size() - 1;
    parts_.back().nodes.push_back(i);
  }
}

/// Values that later parts need wait in an array. A place is free again after the last part that
/// reads it.
void Body::give_slots() {
  const std::size_t n = graph_.nodes().size();
  std::vector<std::size_t> last(n, 0);
  used_in_own_part_.assign(n, false);
  slot_.assign(n, none);
  for (std::size_t p = 0; p < parts_.size(); ++p)
    for (const std::size_t i : parts_[p].nodes)
      for_values(i, [&](std::size_t x) {
        last[x] = p;
        if (named_[x] && part_of_[x] == p) used_in_own_part_[x] = true;
      });
  std::vector<std::size_t> free;
  std::vector<std::vector<std::size_t>> ends(parts_.size());
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (p > 0)
      for (const std::size_t slot : ends[p - 1]) free.push_back(slot);
    for (const std::size_t i : parts_[p].nodes) {
      if (last[i] <= p) continue;
      if (free.empty()) free.push_back(slots_++);
      slot_[i] = free.back();
      free.pop_back();
      ends[last[i]].push_back(slot_[i]);
    }
  }
}

// --- Expressions ---

std::string Body::value(std::size_t i, std::size_t part) const {
  if (node(i).operation == Op::constant) return number(style_, node(i).value);
  if (const auto input = inputs_.find(i); input != inputs_.end()) return input->second;
  if (own_sincos_ && is_angle_function(i)) {
    const std::string index = std::to_string(angle_index_.at(node(i).x.node));
    return (node(i).operation == Op::sine ? "sine[" : "cosine[") + index + "]";
  }
  if (part_of_[i] != part) return "w[" + std::to_string(slot_[i]) + "]";
  return "t" + std::to_string(i);
}

/// Without its sign, as a term of a sum.
std::string Body::term(Operand x, std::size_t part) const {
  if (named_[x.node] || is_leaf(x.node) || (own_sincos_ && is_angle_function(x.node)))
    return value(x.node, part);
  return expression(x.node, part);
}
/// Without its sign, as a factor or as what is subtracted.
std::string Body::factor(Operand x, std::size_t part) const {
  const std::string text = term(x, part);
  const bool is_sum = !named_[x.node] && node(x.node).operation == Op::add;
  return is_sum ? "(" + text + ")" : text;
}
/// The same, where a product has to stay together as well.
std::string Body::divisor(Operand x, std::size_t part) const {
  const std::string text = term(x, part);
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}
/// With its sign, where that does not matter to what is around it.
std::string Body::lone(Operand x, std::size_t part) const {
  return x.negative ? "-" + factor(x, part) : term(x, part);
}

std::string Body::expression(std::size_t i, std::size_t part) const {
  const Node& n = node(i);
  const auto scalar = [&](Operand x) { return as_value(x.node, lone(x, part)); };
  switch (n.operation) {
    case Op::constant:
    case Op::input: return value(i, part);
    case Op::add:
      // The first is not negative unless a constant stands there.
      if (n.x.negative) return term(n.y, part) + " - " + factor(n.x, part);
      return term(n.x, part) + (n.y.negative ? " - " : " + ") + factor(n.y, part);
    case Op::multiply: return factor(n.x, part) + " * " + factor(n.y, part);
    case Op::divide: return factor(n.x, part) + " / " + divisor(n.y, part);
    case Op::safe_ratio:
      return "RATIO(" + scalar(n.x) + ", " + scalar(n.y) + ", " + scalar(n.z) + ")";
    case Op::square_root: return (is_float(style_) ? "sqrtf(" : "sqrt(") + lone(n.x, part) + ")";
    case Op::absolute: return "ABSOLUTE(" + lone(n.x, part) + ")";
    case Op::sine: return (is_float(style_) ? "sinf(" : "sin(") + lone(n.x, part) + ")";
    case Op::cosine: return (is_float(style_) ? "cosf(" : "cos(") + lone(n.x, part) + ")";
  }
  RD_UNREACHABLE();
}

/// Where lanes are asked for and a number may stand.
std::string Body::as_value(std::size_t i, const std::string& text) const {
  return has_lanes(style_) && node(i).operation == Op::constant ? "ALL(" + text + ")" : text;
}

// --- Statements ---

std::string Body::stores(std::size_t i, std::size_t part, const std::string& from) const {
  std::string out;
  const auto found = outputs_.find(i);
  if (found != outputs_.end()) {
    for (const Output& output : found->second) {
      std::string line;
      for (const std::string& place : output.places) line += place + " = ";
      const bool sum = from.find(' ') != std::string::npos;
      line += output.negative ? (sum ? "-(" + from + ")" : "-" + from) : from;
      out += wrapped(line + ";", 2);
    }
  }
  if (slot_[i] != none && part_of_[i] == part)
    out += wrapped("w[" + std::to_string(slot_[i]) + "] = " + from + ";", 2);
  return out;
}

std::string Body::statement(std::size_t i, std::size_t part) const {
  const std::string text = expression(i, part);
  const auto output = outputs_.find(i);
  const std::size_t readers = (output == outputs_.end() ? 0 : output->second.size()) +
                              (slot_[i] != none ? 1U : 0U) + (used_in_own_part_[i] ? 1U : 0U);
  const bool root = has_lanes(style_) && node(i).operation == Op::square_root;
  if (readers == 1 && !used_in_own_part_[i] && !root) return stores(i, part, text);
  const std::string name = value(i, part);
  const std::string type = value_type(style_);
  if (root) {  // lane by lane
    return wrapped(type + " " + name + " = " + lone(node(i).x, part) + ";", 2) +
           wrapped("square_root(&" + name + ");", 2) + stores(i, part, name);
  }
  return wrapped("const " + type + " " + name + " = " + text + ";", 2) + stores(i, part, name);
}

/// Outputs that nothing has to be computed for.
std::string Body::constant_outputs() const {
  std::string out;
  for (const auto& [i, outputs] : outputs_) {
    if (named_[i]) continue;
    out += stores(i, 0, as_value(i, value(i, 0)));
  }
  return out;
}

std::string Body::angles_text() const {
  if (angles_.empty()) return "";
  std::vector<std::string> all;
  for (const std::size_t angle : angles_) all.push_back(as_value(angle, term({angle, false}, 0)));
  std::string type = "lanes";
  std::size_t n = all.size();
  if (!has_lanes(style_)) {
    type = "four";
    std::vector<std::string> blocks;
    all.resize((all.size() + 3) / 4 * 4, number(style_, 0.0));
    for (auto i = all.begin(); i != all.end(); i += 4)
      blocks.push_back("{" + text::joined(std::vector<std::string>(i, i + 4)) + "}");
    all = std::move(blocks);
    n = all.size();
  }
  const std::string size = std::to_string(n);
  const std::string sines = has_lanes(style_) ? size : std::to_string(4 * n);
  return wrapped("const " + type + " angle[" + size + "] = {" + text::joined(all) + "};", 2) +
         wrapped(std::string(value_type(style_)) + " sine[" + sines + "], cosine[" + sines + "];",
                 2) +
         "  sines_and_cosines(angle, sine, cosine, " + size + ");\n";
}

/// The arrays that a part reads and writes, as its parameters have them.
std::vector<std::string> Body::part_arrays(std::size_t part) const {
  std::set<std::string> used;
  for (const std::size_t i : parts_[part].nodes) {
    for_values(i, [&](std::size_t x) {
      if (const auto array = input_arrays_.find(x); array != input_arrays_.end())
        used.insert(array->second);
      if (own_sincos_ && is_angle_function(x))
        used.insert(node(x).operation == Op::sine ? "sine" : "cosine");
      if (named_[x] && part_of_[x] != part) used.insert("w");
    });
    if (slot_[i] != none) used.insert("w");
    if (const auto arrays = stored_.find(i); arrays != stored_.end())
      used.insert(arrays->second.begin(), arrays->second.end());
  }
  return {used.begin(), used.end()};
}

std::string Body::unused_inputs() const {
  std::set<std::string> used;
  for (const Part& part : parts_)
    for (const std::size_t i : part.nodes)
      for_values(i, [&](std::size_t x) {
        if (const auto array = input_arrays_.find(x); array != input_arrays_.end())
          used.insert(array->second);
      });
  const std::function<void(std::size_t)> visit = [&](std::size_t i) {
    if (const auto array = input_arrays_.find(i); array != input_arrays_.end())
      used.insert(array->second);
    for_operands(i, [&](Operand x) { visit(x.node); });
  };
  for (const std::size_t angle : angles_) visit(angle);
  for (const auto& [i, outputs] : outputs_)
    if (const auto array = input_arrays_.find(i); array != input_arrays_.end())
      used.insert(array->second);
  std::string out;
  for (const Array& array : function_.inputs)
    if (used.count(array.name) == 0) out += "  (void)" + array.name + ";\n";
  const bool reads = !used.empty();
  if (has_lanes(style_) && !reads && outputs_.empty()) out += "  (void)stride;\n";
  return out;
}

std::string Body::part_text(std::size_t part) const {
  std::string out;
  for (const std::size_t i : parts_[part].nodes) out += statement(i, part);
  return out;
}

std::string Body::text() const {
  const bool lanes = has_lanes(style_);
  std::string head;
  const bool several = parts_.size() > 1;
  const std::string restricted = is_c(style_) ? "restrict " : "__restrict ";
  const std::string star = is_c(style_) ? " *" : "* ";
  std::string calls;
  for (std::size_t p = 0; several && p < parts_.size(); ++p) {
    std::vector<std::string> all;
    std::vector<std::string> names = part_arrays(p);
    const bool strides = lanes && std::any_of(names.begin(), names.end(), [&](const auto& name) {
                           return has_configurations(name);
                         });
    if (strides) all.emplace_back(is_c(style_) ? "size_t stride" : "std::size_t stride");
    for (const std::string& name : names) {
      const bool own = waits(name);
      const bool written =
          name == "w" || std::any_of(function_.outputs.begin(), function_.outputs.end(),
                                     [&](const Array& array) { return array.name == name; });
      all.push_back((written ? "" : "const ") +
                    std::string(own ? value_type(style_) : number_type(style_)) + star +
                    restricted + name);
    }
    head += wrapped("static NOT_INLINED void " + part_name(p) + "(" + text::joined(all) + ") {", 0);
    head += part_text(p) + "}\n\n";
    if (strides) names.insert(names.begin(), "stride");
    calls += wrapped(part_name(p) + "(" + text::joined(names) + ");", 2);
  }
  std::string body = unused_inputs() + angles_text();
  if (several && slots_ > 0)
    body += "  " + std::string(value_type(style_)) + " w[" + std::to_string(slots_) +
            "];  // results that wait for a later part\n";
  body += constant_outputs() + (several ? calls : part_text(0));

  if (!lanes) return head + wrapped(declaration(style_, function_, true) + " {", 0) + body + "}\n";

  // One block of lanes, and the loop over all configurations.
  std::vector<std::string> block = {is_c(style_) ? "size_t stride" : "std::size_t stride"};
  for (const Array& array : function_.inputs) block.push_back(parameter(style_, array, true, true));
  for (const Array& array : function_.outputs)
    block.push_back(parameter(style_, array, false, true));
  const std::string block_name = style_.name + "_" + function_.name + "_block";
  std::string out = head +
                    wrapped("static void " + block_name + "(" + text::joined(block) + ") {", 0) +
                    body + "}\n\n" + wrapped(declaration(style_, function_, false) + " {", 0);
  const std::string size = is_c(style_) ? "size_t" : "std::size_t";
  const auto arguments = [&](bool all, const std::string& stride, const std::string& suffix) {
    std::vector<std::string> list = {stride};
    for (const Array& array : function_.inputs)
      list.push_back(array.of_robot ? array.name : array.name + suffix);
    for (const Array& array : function_.outputs) list.push_back(array.name + suffix);
    (void)all;
    return text::joined(list);
  };
  out += "  " + size + " k = 0;\n  for (; k + LANES <= count; k += LANES)\n";
  out += wrapped(block_name + "(" + arguments(true, "count", " + k") + ");", 4);
  out +=
      "  if (k == count) return;\n  // The rest, the last configuration in the lanes left over.\n";
  const std::string type = number_type(style_);
  for (const Array& array : function_.inputs)
    if (!array.of_robot)
      out += "  " + type + " " + array.name + "_[" + std::to_string(std::max(1, array.size())) +
             " * LANES];\n";
  for (const Array& array : function_.outputs)
    out += "  " + type + " " + array.name + "_[" + std::to_string(std::max(1, array.size())) +
           " * LANES];\n";
  for (const Array& array : function_.inputs)
    if (!array.of_robot)
      out += wrapped("take_rest(" + std::to_string(array.size()) + ", k, count, " + array.name +
                         ", " + array.name + "_);",
                     2);
  out += wrapped(block_name + "(" + arguments(false, "LANES", "_") + ");", 2);
  for (const Array& array : function_.outputs)
    out += wrapped("give_rest(" + std::to_string(array.size()) + ", k, count, " + array.name +
                       "_, " + array.name + ");",
                   2);
  return out + "}\n";
}

// --- What stands around the functions ------------------------------------------------------------

[[nodiscard]] bool uses(const std::vector<Recording>& functions, Op op) {
  for (const Recording& function : functions)
    for (const Node& node : function.graph.nodes())
      if (node.operation == op) return true;
  return false;
}

[[nodiscard]] std::string generated_by(const Style& style) {
  return comment("Generated by `dynamics generate` " + style.version +
                 " (realtime_dynamics) for the robot " + text::quoted(style.robot) +
                 ". Do not edit: generate it anew.");
}

/// Sines and cosines of several angles at once, without a branch. VALUE is their type, BITS its bits.
const char* const polynomial_text = R"(    const VALUE t = ANGLE * 0.6366197723675814 + round;
    const VALUE k = t - round;
    // pi/2 in two parts. The first leaves its low bits free, so that k times it is exact.
    const VALUE r = (ANGLE - k * 1.5707963267341256) - k * 6.077100506506192e-11;
    const VALUE z = r * r;
    const VALUE zz = z * z;
    const VALUE z4 = zz * zz;
    const VALUE odd_sum = (z * 8.333333333333333e-03 - 1.6666666666666666e-01) +
                          zz * (z * 2.7557319223985893e-06 - 1.984126984126984e-04) +
                          z4 * ((z * 1.6059043836821613e-10 - 2.505210838544172e-08) -
                                zz * 7.647163731819816e-13);
    const VALUE even_sum = (z * 4.1666666666666664e-02 - 0.5) +
                           zz * (z * 2.48015873015873e-05 - 1.388888888888889e-03) +
                           z4 * ((z * 2.08767569878681e-09 - 2.755731922398589e-07) +
                                 zz * (z * 4.779477332387385e-14 - 1.1470745597729725e-11));
    const VALUE sin_r = r + r * (z * odd_sum);
    const VALUE cos_r = z * even_sum + 1.0;
    const BITS quadrant = (BITS)t;
    const BITS swap = ((BITS)sin_r ^ (BITS)cos_r) & -(quadrant & 1);
    SINE = (VALUE)((BITS)sin_r ^ swap ^ ((quadrant & 2) << 62));
    COSINE = (VALUE)((BITS)cos_r ^ swap ^ (((quadrant + 1) & 2) << 62));
    beyond |= ((BITS)ANGLE & 0x7fffffffffffffff) > limit;
)";

const char* const scalar_sincos_head = R"(
#if defined(__GNUC__)
typedef double four __attribute__((vector_size(32)));
typedef long long four_bits __attribute__((vector_size(32)));
#else
struct four {
  double at[4];
  double operator[](int i) const { return at[i]; }
};
#endif

// Sines and cosines of n times four angles without a branch: Taylor's series on |r| <= pi/4. Within
// 1e-15 up to |x| = 1e5. Beyond that, and where the compiler has no vectors, by the library.
static void sines_and_cosines(const four* x, double* s, double* c, int n) {
#if defined(__GNUC__)
  const double round = 6755399441055744.0;     // 1.5 * 2^52: adding it rounds to a whole number
  const long long limit = 0x40f86a0000000000;  // the bits of 1e5
  four_bits beyond = {0};
  for (int i = 0; i < n; ++i) {
    four sine, cosine;
)";
const char* const scalar_sincos_tail = R"(    std::memcpy(s + 4 * i, &sine, sizeof sine);
    std::memcpy(c + 4 * i, &cosine, sizeof cosine);
  }
  if ((beyond[0] | beyond[1] | beyond[2] | beyond[3]) == 0) return;
#endif
  for (int i = 0; i < 4 * n; ++i) {
    s[i] = std::sin(x[i / 4][i % 4]);
    c[i] = std::cos(x[i / 4][i % 4]);
  }
}
)";

const char* const lanes_head = R"(
// So many configurations at once. The width of the processor is the best.
#ifndef LANES
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#endif
#define BYTES (8 * LANES)
typedef double lanes __attribute__((vector_size(BYTES)));
typedef long long bits __attribute__((vector_size(BYTES)));
typedef double unaligned_lanes __attribute__((vector_size(BYTES), aligned(8), may_alias));

// Element i of an array, of all lanes.
#define IN(array, i) (*(const unaligned_lanes*)(array + (i) * stride))
#define OUT(array, i) (*(unaligned_lanes*)(array + (i) * stride))
// The same number in all lanes.
#define ALL(x) (ZERO + (x))
#define SHARED(array, i) ALL(array[i])
)";
const char* const lanes_sincos_head = R"(
// Sines and cosines without a branch: Taylor's series on |r| <= pi/4. Within 1e-15 up to |x| = 1e5;
// beyond that the library takes over.
static void sines_and_cosines(const lanes* x, lanes* s, lanes* c, int n) {
  const double round = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  const long long limit = 0x40f86a0000000000;  // the bits of 1e5
  bits beyond = {0};
  for (int i = 0; i < n; ++i) {
)";
const char* const lanes_sincos_tail = R"(  }
  for (int lane = 0; lane < LANES; ++lane) {
    if (!beyond[lane]) continue;
    for (int i = 0; i < n; ++i) {
      s[i][lane] = sin(x[i][lane]);
      c[i][lane] = cos(x[i][lane]);
    }
  }
}
)";
const char* const lanes_rest_text = R"(
static void take_rest(int n, SIZE k, SIZE count, const double* from, double* to) {
  for (int i = 0; i < n; ++i)
    for (SIZE lane = 0; lane < LANES; ++lane)
      to[(SIZE)i * LANES + lane] = from[(SIZE)i * count + (k + lane < count ? k + lane : count - 1)];
}
static void give_rest(int n, SIZE k, SIZE count, const double* from, double* to) {
  for (int i = 0; i < n; ++i)
    for (SIZE lane = 0; k + lane < count; ++lane)
      to[(SIZE)i * count + k + lane] = from[(SIZE)i * LANES + lane];
}
)";

[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

using Words = std::vector<std::pair<const char*, const char*>>;
const Words sincos_of_numbers = {{"VALUE", "four"},
                                 {"BITS", "four_bits"},
                                 {"ANGLE", "x[i]"},
                                 {"COSINE", "cosine"},
                                 {"SINE", "sine"}};
const Words sincos_in_lanes = {
    {"VALUE", "lanes"}, {"BITS", "bits"}, {"ANGLE", "x[i]"}, {"COSINE", "c[i]"}, {"SINE", "s[i]"}};

/// What the functions of a source are made of.
[[nodiscard]] std::string tools_text(const Style& style, const std::vector<Recording>& functions) {
  std::string out;
  const bool lanes = has_lanes(style);
  if (lanes) {
    out += replaced(lanes_head, "ZERO", is_c(style) ? "(lanes){0.0}" : "lanes{0.0}");
    if (uses(functions, Op::safe_ratio))
      out +=
          "// x / y, z where y is exactly zero.\n"
          "#define RATIO(x, y, z) \\\n"
          "  ((lanes)((((y) == ALL(0.0)) & (bits)(z)) | (~((y) == ALL(0.0)) & (bits)((x) / "
          "(y)))))\n";
    if (uses(functions, Op::absolute))
      out += "#define ABSOLUTE(x) ((lanes)((bits)(x) & 0x7fffffffffffffff))\n";
    if (uses(functions, Op::square_root))
      out +=
          "\nstatic void square_root(lanes* x) {\n"
          "  for (int lane = 0; lane < LANES; ++lane) (*x)[lane] = sqrt((*x)[lane]);\n}\n";
  } else {
    if (uses(functions, Op::safe_ratio))
      out +=
          "// x / y, z where y is exactly zero.\n"
          "#define RATIO(x, y, z) ((y) == 0 ? (z) : (x) / (y))\n";
    if (uses(functions, Op::absolute)) out += "#define ABSOLUTE(x) ((x) < 0 ? -(x) : (x))\n";
  }
  if (has_own_sincos(style) && uses(functions, Op::sine) + uses(functions, Op::cosine) > 0) {
    const std::string head = lanes ? lanes_sincos_head : scalar_sincos_head;
    const std::string tail = lanes ? lanes_sincos_tail : scalar_sincos_tail;
    std::string polynomial = polynomial_text;
    for (const auto& [from, to] : lanes ? sincos_in_lanes : sincos_of_numbers)
      polynomial = replaced(polynomial, from, to);
    out += head + polynomial + tail;
  }
  if (lanes) out += replaced(lanes_rest_text, "SIZE", is_c(style) ? "size_t" : "std::size_t");
  return out;
}

/// What a user has to know before calling anything.
[[nodiscard]] std::string conventions(const Style& style) {
  std::string out;
  out += comment(
      "Units are SI. Arrays are in the order of the joints below; positions of a "
      "floating joint are x y z qx qy qz qw (a quaternion of any length but zero), its "
      "velocities [angular; linear] in the moving link's axes. Matrices have their rows "
      "one after another: element (i, j) of M is M[i * nv + j].");
  if (has_lanes(style))
    out += comment(
        "Each function computes `count` configurations. Element i of configuration k is "
        "array[i * count + k], so that one coordinate of all configurations lies "
        "together. Gravity and payloads are the same for all.");
  out += comment(
      "Nothing is checked: of values that are not finite come results that are not, and so "
      "may a mass matrix that is singular where its inverse is asked for. Results must "
      "not overlap arguments. No function allocates, waits or keeps anything, so that any "
      "number of threads may call them.");
  out += "//\n" + comment("Joints: " + text::joined(style.joints));
  return out;
}

}  // namespace

std::string header_name(const Style& style) {
  return style.name + (is_c(style) ? "_dynamics.h" : "_dynamics.hpp");
}
std::string source_name(const Style& style) {
  return style.name + (is_c(style) ? "_dynamics.c" : "_dynamics.cpp");
}

std::string header_text(const Style& style, const std::vector<Recording>& functions) {
  const bool c = is_c(style);
  const std::string guard = upper(style.name) + (c ? "_DYNAMICS_H" : "_DYNAMICS_HPP");
  std::string out = generated_by(style) + "//\n" + conventions(style) + "#ifndef " + guard +
                    "\n#define " + guard + "\n\n";
  if (has_lanes(style)) out += c ? "#include <stddef.h>\n\n" : "#include <cstddef>\n\n";
  const std::string nq = std::to_string(style.nq);
  const std::string nv = std::to_string(style.nv);
  if (c) {
    out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nenum { " + style.name + "_nq = " + nq +
           ", " + style.name + "_nv = " + nv + " };\n";
  } else {
    out += "namespace " + style.name + " {\n\nconstexpr int nq = " + nq +
           ";\nconstexpr int nv = " + nv + ";\n";
  }
  for (const Recording& function : functions) {
    out += '\n' + comment(function.formula);
    for (const auto* arrays : {&function.inputs, &function.outputs})
      for (const Array& array : *arrays)
        out +=
            comment("  " + array.name + "[" + std::to_string(array.size()) + "] " + array.meaning);
    out += wrapped(declaration(style, function, false) + ";", 0);
  }
  out += c ? "\n#ifdef __cplusplus\n}\n#endif\n" : "\n}  // namespace " + style.name + "\n";
  return out + "\n#endif\n";
}

std::string source_text(const Style& style, const std::vector<Recording>& functions) {
  const bool c = is_c(style);
  std::string out = generated_by(style) + "#include \"" + header_name(style) + "\"\n\n";
  if (c) {
    out += "#include <math.h>\n";
  } else {
    out += "#include <cmath>\n#include <cstring>\n";
  }
  std::string bodies;
  bool split = false;
  for (const Recording& function : functions) {
    const std::string body = Body(style, function).text();
    split = split || body.find("NOT_INLINED") != std::string::npos;
    bodies += '\n' + comment(function.name + ", " + function.method + ": " +
                             operations(count(function.graph)));
    bodies += body;
  }
  if (split)
    out +=
        "\n// Parts of large functions stay apart, so that they compile in linear time.\n"
        "#if defined(__GNUC__)\n#define NOT_INLINED __attribute__((noinline))\n#else\n"
        "#define NOT_INLINED\n#endif\n";
  out += tools_text(style, functions);
  if (!c) out += "\nnamespace " + style.name + " {\n";
  out += bodies;
  if (!c) out += "\n}  // namespace " + style.name + "\n";
  return out;
}

}  // namespace dynamics_core::generation
