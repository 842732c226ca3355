// SPDX-License-Identifier: Apache-2.0
/// The complexity tables of the papers, measured on a general arm of revolute joints and guarded.

#include "dynamics_core/operation_counts.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "dynamics_core/load.hpp"

namespace {

using namespace dynamics_core;

const FormulaRow& find(const std::string& quantity, const std::string& method) {
  static const std::vector<FormulaRow> table = operation_formulas();
  for (const FormulaRow& row : table)
    if (row.quantity == quantity && row.method == method) return row;
  throw std::runtime_error("no row " + quantity + ", " + method);
}

/// At or below the paper's formulas from three joints to thirty. A division counts as a product,
/// as the papers say (Saha 2001, Table I: "Multiplication/Division").
void expect_at_or_below(const std::string& quantity, const std::string& method,
                        const Formula& multiplications, const Formula& additions) {
  SCOPED_TRACE(quantity + ", " + method);
  const FormulaRow& row = find(quantity, method);
  ASSERT_TRUE(row.multiplications && row.additions && row.divisions);
  EXPECT_EQ(row.from, 3);
  for (int n = 3; n <= 30; ++n) {
    EXPECT_LE((*row.multiplications)(n) + (*row.divisions)(n), multiplications(n)) << n;
    EXPECT_LE((*row.additions)(n), additions(n)) << n;
  }
}

TEST(OperationCounts, MataTable1InverseDynamics) {
  expect_at_or_below("inverse dynamics", "gibbs_appell", Formula({-101 * 6, 96 * 6}),
                     Formula({-100 * 6, 84 * 6}));
}

TEST(OperationCounts, MataTable2MassMatrix) {
  expect_at_or_below("mass matrix", "gibbs_appell", Formula({-49 * 6, 117, 69}),
                     Formula({-69 * 6, 189, 51}));
  EXPECT_LE(find("mass matrix", "gibbs_appell").at_six.multiplications, 482);
  EXPECT_LE(find("mass matrix", "gibbs_appell").at_six.additions, 426);
}

TEST(OperationCounts, MataTables3And4ForwardDynamics) {
  expect_at_or_below("bias", "gibbs_appell", Formula({-108 * 6, 96 * 6}),
                     Formula({-105 * 6, 83 * 6}));
  expect_at_or_below("forward dynamics", "gibbs_appell", Formula({-157 * 6, 695, 78, 1}),
                     Formula({-174 * 6, 683, 60, 1}));
  const OperationCount& six = find("forward dynamics", "gibbs_appell").at_six;
  EXPECT_LE(six.multiplications + six.divisions, 1042);
  EXPECT_LE(six.additions, 905);
  EXPECT_EQ(six.square_roots, 0);
  const OperationCount& articulated = find("forward dynamics", "articulated_body").at_six;
  EXPECT_LE(articulated.multiplications + articulated.divisions, 1533);
  EXPECT_LE(articulated.additions, 1415);
  const OperationCount& composite = find("forward dynamics", "cholesky").at_six;
  EXPECT_LE(composite.multiplications + composite.divisions, 1627);
  EXPECT_LE(composite.additions, 1261);
}

TEST(OperationCounts, Saha1999Table1InverseDynamics) {
  expect_at_or_below("inverse dynamics", "denoc", Formula({-44 * 6, 120 * 6}),
                     Formula({-55 * 6, 97 * 6}));
}

/// The paper counts from φ = τ − bias on; φ comes from "an inverse dynamics program".
TEST(OperationCounts, Saha2001TableIForwardDynamics) {
  expect_at_or_below("solution of M q̈ = φ", "udut", Formula({-284 * 6, 191 * 6}),
                     Formula({-325 * 6, 187 * 6}));
}

TEST(OperationCounts, EveryMethodFollowsAFormula) {
  for (const FormulaRow& row : operation_formulas()) {
    SCOPED_TRACE(row.quantity + ", " + row.method);
    ASSERT_TRUE(row.multiplications && row.additions && row.divisions);
    EXPECT_DOUBLE_EQ((*row.multiplications)(6), row.at_six.multiplications);
    EXPECT_DOUBLE_EQ((*row.additions)(6), row.at_six.additions);
    EXPECT_DOUBLE_EQ((*row.divisions)(6), row.at_six.divisions);
    EXPECT_EQ(row.at_six.sincos, 5);  // nothing depends on the angle about gravity
    if (row.published && row.published->multiplications) {
      EXPECT_DOUBLE_EQ((*row.published->multiplications)(6), row.published->multiplications_at_six);
      EXPECT_DOUBLE_EQ((*row.published->additions)(6), row.published->additions_at_six);
    }
  }
}

std::string table_row(const FormulaRow& row) {
  std::ostringstream out;
  const int divisions = row.at_six.divisions;
  out << "| " << row.quantity << " | " << row.method << " | " << row.multiplications->text()
      << " | " << row.additions->text() << " | " << row.at_six.multiplications << " M "
      << row.at_six.additions << " A"
      << (divisions > 0 ? " " + std::to_string(divisions) + " D" : "") << " | ";
  if (const auto& p = row.published) {
    out << p->multiplications_at_six << " M " << p->additions_at_six << " A | ";
    if (p->multiplications)
      out << p->multiplications->text() << " M, " << p->additions->text() << " A; ";
    out << p->source << " |";
  } else {
    out << "| |";
  }
  return out.str();
}

TEST(OperationCounts, TheDocumentShowsThem) {
  std::ifstream file(std::string(RD_SOURCE_DIR) + "/docs/papers.md");
  std::stringstream document;
  document << file.rdbuf();
  for (const FormulaRow& row : operation_formulas())
    EXPECT_NE(document.str().find(table_row(row)), std::string::npos)
        << "docs/papers.md, Operation counts, lacks the line\n"
        << table_row(row);
}

/// A robot with many right angles and zeros takes far fewer operations than a general arm.
TEST(OperationCounts, ZerosOfARealRobotAreNotCounted) {
  const Model ur5e = load_urdf(std::string(RD_SOURCE_DIR) + "/config/robots/ur5e.urdf");
  for (const MethodCount& row : count_operations(ur5e)) {
    SCOPED_TRACE(row.quantity + ", " + row.method);
    EXPECT_LT(row.count.multiplications, find(row.quantity, row.method).at_six.multiplications);
  }
}

TEST(OperationCounts, MethodsThatCannotTreatARobotAreLeftOut) {
  Model model = general_arm(3);
  model.bodies[2].mimic = true;
  model.bodies[2].dof = model.bodies[2].q = 1;
  model.nv = model.nq = 2;
  bool has_articulated_body = false;
  bool has_cholesky = false;
  for (const MethodCount& row : count_operations(model)) {
    has_articulated_body = has_articulated_body || row.method == "articulated_body";
    has_cholesky = has_cholesky || row.method == "cholesky";
  }
  EXPECT_FALSE(has_articulated_body);
  EXPECT_TRUE(has_cholesky);
}

TEST(Formula, GoesThroughItsValues) {
  std::vector<int> cubic, square, line, none;
  for (int n = 3; n <= 10; ++n) {
    cubic.push_back(n * (n + 1) * (n + 2) / 6 - 7);
    square.push_back(n * (23 * n + 39) / 2 - 49);
    line.push_back(96 * n - 101);
    none.push_back(n == 7 ? 1 : 0);
  }
  ASSERT_TRUE(Formula::through(cubic, 3));
  EXPECT_EQ(Formula::through(cubic, 3)->text(), "1/6 n³ + 0.5n² + 1/3 n − 7");
  EXPECT_EQ(Formula::through(square, 3)->text(), "11.5n² + 19.5n − 49");
  EXPECT_EQ(Formula::through(line, 3)->text(), "96n − 101");
  EXPECT_EQ(Formula::through(std::vector<int>(8, 0), 3)->text(), "0");
  EXPECT_EQ(Formula::through({3, 4, 5, 6}, 3)->text(), "n");
  EXPECT_EQ(Formula::through({-3, -4, -5, -6}, 3)->text(), "−n");
  EXPECT_FALSE(Formula::through(none, 3));
  EXPECT_FALSE(Formula::through({1, 2, 4, 8, 16, 32, 64, 128}, 3));
  for (int n = 3; n <= 10; ++n)
    EXPECT_DOUBLE_EQ((*Formula::through(cubic, 3))(n), cubic[static_cast<std::size_t>(n - 3)]);
}

}  // namespace
