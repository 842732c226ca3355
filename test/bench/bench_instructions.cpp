/// Runs one algorithm a given number of times on a robot, for callgrind: the difference between
/// two runs of different length is the cost of a call, free of loading and start-up.
///
///     bench_instructions ROBOT QUANTITY REPETITIONS

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "dynamics_core/articulated_body.hpp"
#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/denoc.hpp"
#include "dynamics_core/gibbs_appell.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/newton_euler.hpp"
#include "dynamics_core/udut.hpp"

using dynamics_core::Status;

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: bench_instructions ROBOT QUANTITY REPETITIONS\n";
    return 2;
  }
  const dynamics_core::Model model = dynamics_core::load_model(argv[1]);
  dynamics_core::Workspace<double> ws(model);
  const int n = model.nv;
  Eigen::VectorXd q = model.neutral();
  q.array() += 0.3;
  Eigen::VectorXd v = Eigen::VectorXd::LinSpaced(n, -1.0, 1.0);
  Eigen::VectorXd a = Eigen::VectorXd::LinSpaced(n, 2.0, -1.0);
  Eigen::VectorXd out(n);
  Eigen::MatrixXd M(n, n);
  namespace dc = dynamics_core;
  const std::map<std::string, std::function<Status()>> quantities = {
      {"newton_euler::inverse_dynamics",
       [&] { return dc::newton_euler::inverse_dynamics(ws, q, v, a, out); }},
      {"denoc::inverse_dynamics", [&] { return dc::denoc::inverse_dynamics(ws, q, v, a, out); }},
      {"gibbs_appell::inverse_dynamics",
       [&] { return dc::gibbs_appell::inverse_dynamics(ws, q, v, a, out); }},
      {"gibbs_appell::bias", [&] { return dc::gibbs_appell::bias(ws, q, v, out); }},
      {"newton_euler::bias", [&] { return dc::newton_euler::bias(ws, q, v, out); }},
      {"newton_euler::gravity", [&] { return dc::newton_euler::gravity(ws, q, out); }},
      {"composite_body::mass_matrix", [&] { return dc::composite_body::mass_matrix(ws, q, M); }},
      {"denoc::mass_matrix", [&] { return dc::denoc::mass_matrix(ws, q, M); }},
      {"gibbs_appell::mass_matrix", [&] { return dc::gibbs_appell::mass_matrix(ws, q, M); }},
      {"udut::forward_dynamics",
       [&] { return dc::udut::forward_dynamics(ws, q, v, a, out); }},
      {"gibbs_appell::forward_dynamics",
       [&] { return dc::gibbs_appell::forward_dynamics(ws, q, v, a, out); }},
      {"cholesky::forward_dynamics",
       [&] { return dc::cholesky::forward_dynamics(ws, q, v, a, out); }},
      {"articulated_body::forward_dynamics",
       [&] { return dc::articulated_body::forward_dynamics(ws, q, v, a, out); }},
  };
  if (std::string(argv[2]) == "list") {
    for (const auto& entry : quantities) std::cout << entry.first << '\n';
    return 0;
  }
  const auto found = quantities.find(argv[2]);
  if (found == quantities.end()) {
    std::cerr << "bench_instructions: no quantity " << argv[2] << "; try list\n";
    return 2;
  }
  for (int i = std::atoi(argv[3]); i > 0; --i)
    if (found->second() != Status::ok) return 1;
  return 0;
}
