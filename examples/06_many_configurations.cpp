// SPDX-License-Identifier: Apache-2.0
// Many configurations in one call, by the names of the joints: for planners and scripts. This face
// checks all it is given, allocates its answers and throws; it is not for the real-time path.
//
//     06_many_configurations [robot.urdf]

#include <dynamics_core/batch.hpp>
#include <dynamics_core/load.hpp>
#include <exception>
#include <iostream>

int main(int argc, char** argv) try {
  using namespace dynamics_core;
  const Model model = load_urdf(argc > 1 ? argv[1] : "config/robots/panda.urdf");
  const std::size_t n = select_joints(model).size();  // joints of one degree of freedom

  // [many configurations]
  const JointStates latest(model);  // where the joints are that a query does not name
  const Batch batch(model, latest);

  BatchQuery query;              // no joint names: all joints
  for (int k = 0; k < 100; ++k)  // configurations, one after the other
    query.positions.insert(query.positions.end(), n, 0.01 * k);

  const BatchAnswer gravity = batch.gravity(query);  // throws RequestError
  const BatchAnswer M = batch.mass_matrix(query);    // k matrices by rows
  // [many configurations]

  std::cout << model.name << ": " << gravity.configurations << " configurations\n"
            << "joint, and its gravity effort in the first and in the last of them\n";
  for (std::size_t j = 0; j < gravity.rows; ++j)
    std::cout << gravity.joint_names[j] << ": " << gravity.data[j] << ", "
              << gravity.data[gravity.data.size() - n + j] << '\n';
  for (std::size_t k = 0; k < M.configurations; ++k)  // M's diagonal is positive everywhere
    for (std::size_t j = 0; j < n; ++j)
      if (!(M.data[(k * n + j) * n + j] > 0.0)) return 1;
  return gravity.configurations == 100 && M.data.size() == 100 * n * n ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
