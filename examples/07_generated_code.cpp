// SPDX-License-Identifier: Apache-2.0
// Code that was generated for one robot while this example was built (examples/CMakeLists.txt), and
// the library beside it: the same torques in a fraction of the time.
//
//     07_generated_code [panda.urdf]

#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/load.hpp>
#include <exception>
#include <iostream>
// [include]
#include <panda_dynamics.hpp>
// [include]
#include <panda_lanes_dynamics.hpp>
#include <vector>

int main(int argc, char** argv) try {
  const char* file = argc > 1 ? argv[1] : "config/robots/panda.urdf";

  // [call]
  const double q[panda::nq] = {0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.8};
  const double v[panda::nv] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  const double a[panda::nv] = {1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0};
  // On the flange: mass, centre of mass, inertia about it xx xy xz yy yz zz.
  const double payload[10] = {1.2, 0.0, 0.0, 0.1, 0.003, 0.0, 0.0, 0.003, 0.0, 0.002};

  double tau[panda::nv];
  panda::inverse_dynamics(q, v, a, payload, tau);
  double M[panda::nv * panda::nv];  // its rows one after another
  panda::mass_matrix(q, payload, M);
  // [call]

  // [lanes]
  const std::size_t count = 1000;
  std::vector<double> many_q(panda_lanes::nq * count), efforts(panda_lanes::nv * count);
  for (std::size_t k = 0; k < count; ++k)  // joint 2 sweeps from -1 to 1, the others stand
    many_q[1 * count + k] = -1.0 + 2.0 * static_cast<double>(k) / (count - 1);
  panda_lanes::gravity(count, many_q.data(), efforts.data());
  // [lanes]

  using namespace dynamics_core;
  using Vector = Eigen::Matrix<double, panda::nv, 1>;
  const Model model = load_urdf(file);
  Dynamics<double> robot(model);
  Payload<double> load{payload[0], {payload[1], payload[2], payload[3]}, {}};
  load.inertia = {payload[4], payload[5], payload[6], payload[7], payload[8], payload[9]};
  Eigen::VectorXd expected(robot.nv());
  if (robot.set_payload(model.find_link("panda_link8"), load) != Status::ok ||
      robot.inverse_dynamics(Vector(q), Vector(v), Vector(a), expected) != Status::ok)
    return 1;

  // The last configuration, without the load.
  Vector q_last = Vector::Zero(), g_last;
  q_last[1] = 1.0;
  for (int i = 0; i < panda::nv; ++i)
    g_last[i] = efforts[static_cast<std::size_t>(i) * count + count - 1];
  Eigen::VectorXd g(robot.nv());
  if (Dynamics<double>(model).gravity(q_last, g) != Status::ok) return 1;

  const Eigen::Map<const Vector> generated(tau);
  std::cout << "generated: " << generated.transpose() << "\nlibrary:   " << expected.transpose()
            << "\nM(0, 0) with the load: " << M[0] << '\n';
  return (generated - expected).norm() + (g_last - g).norm() < 1e-9 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
