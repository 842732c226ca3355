#include <boost/numeric/odeint.hpp>
#include <iostream>

#include "dynamics_core/load.hpp"

int main() {
  const auto model = dynamics_core::load_urdf_string(R"(
    <robot name="pendulum">
      <link name="base"/>
      <link name="bob">
        <inertial>
          <origin xyz="0 0 -0.5"/>
          <mass value="2"/>
          <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
        </inertial>
      </link>
      <joint name="pivot" type="continuous">
        <parent link="base"/>
        <child link="bob"/>
        <axis xyz="0 1 0"/>
      </joint>
    </robot>)");
  std::cout << model.name << ": " << model.nv << " degree of freedom\n";
  return model.nv == 1 && model.find_joint("pivot") == 0 ? 0 : 1;
}
