# SPDX-License-Identifier: Apache-2.0
"""What demo.launch.py makes of a plain URDF; needs no ROS."""

import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = os.environ['RD_SOURCE_DIR']
DYNAMICS = os.environ['RD_DYNAMICS_EXE']
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, 'launch'))
import demo_setup  # noqa: E402

ROBOTS = ('panda', 'ur5e', 'puma560', 'two_arm_torso')

TWO_JOINTS = """
<robot name="two">
  <link name="base"/>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="wheel" type="continuous"><parent link="base"/><child link="a"/></joint>
  <joint name="slide" type="prismatic"><parent link="a"/><child link="b"/>
    <limit lower="1" upper="2" velocity="0.05" effort="10"/></joint>
  <ros2_control name="old" type="system"/>
</robot>"""


def path_of(name):
    return os.path.join(SOURCE, 'config', 'robots', name + '.urdf')


def robot_of(name):
    with open(path_of(name), encoding='utf-8') as file:
        return demo_setup.read_robot(file.read())


class TestDemoSetup(unittest.TestCase):

    def test_start_and_goal_are_inside_the_limits(self):
        for name in ROBOTS:
            robot = robot_of(name)
            start = demo_setup.start_of(robot)
            goal = demo_setup.goal_of(robot, start)
            for joint, *ends in zip(robot.joints, start, goal):
                for end in ends:
                    self.assertTrue(joint.lower < end < joint.upper, f'{name} {joint} {end}')
                self.assertNotEqual(*ends)

    def test_joint_without_limits_and_one_far_from_zero(self):
        robot = demo_setup.read_robot(TWO_JOINTS)
        start = demo_setup.start_of(robot)
        self.assertEqual(start, [0.0, 1.2])
        self.assertEqual(demo_setup.goal_of(robot, start), [0.5, 1.3])

    def test_no_joint_exceeds_half_its_velocity_limit(self):
        robot = demo_setup.read_robot(TWO_JOINTS)
        # 0.1 m at 0.025 m/s; a quintic's peak is 15/8 of its mean
        self.assertAlmostEqual(demo_setup.travel_time(robot, [0.0, 1.2], [0.5, 1.3]), 7.5)

    def test_root_link(self):
        self.assertEqual(robot_of('panda').root, 'panda_link0')

    def test_ros2_control_block(self):
        for name in ROBOTS:
            robot = robot_of(name)
            start = demo_setup.start_of(robot)
            text = demo_setup.with_ros2_control(robot, 'feedforward', start, {'a': 1})
            block, = ElementTree.fromstring(text).findall('ros2_control')
            self.assertEqual([joint.get('name') for joint in block.findall('joint')],
                             robot.joint_names)
            self.assertFalse([n for n in robot.joint_names if 'mimic' in n])
            self.assertEqual(block.find('hardware/plugin').text,
                             'realtime_dynamics/SimulatedSystem')
            self.assertEqual(block.find('hardware/param[@name="a"]').text, '1')
            for joint, position in zip(block.findall('joint'), start):
                self.assertEqual(
                    [i.get('name') for i in joint.findall('command_interface')], ['effort'])
                self.assertEqual(
                    [i.get('name') for i in joint.findall('state_interface')],
                    ['position', 'velocity', 'acceleration', 'effort'])
                initial = joint.find('state_interface[@name="position"]/param').text
                self.assertEqual(float(initial), position)

    def test_a_block_that_is_there_is_replaced(self):
        robot = demo_setup.read_robot(TWO_JOINTS)
        text = demo_setup.with_ros2_control(robot, 'pass_through', [0.0, 1.2])
        block, = ElementTree.fromstring(text).findall('ros2_control')
        self.assertEqual(block.get('name'), demo_setup.HARDWARE)
        self.assertEqual(
            [i.get('name') for i in block.find('joint').findall('command_interface')],
            ['position', 'velocity', 'effort'])

    def test_gains_follow_from_the_mass_matrix(self):
        with tempfile.NamedTemporaryFile('w', suffix='.urdf') as file:
            file.write(re.sub('<ros2_control.*/>', '', TWO_JOINTS))
            file.flush()
            robot = demo_setup.read_robot(TWO_JOINTS)

            def gains(mode):
                return demo_setup.gains_of(robot, file.name, mode, [0.0, 1.2], 1000, DYNAMICS)

            # 1 kg slides at 20 rad/s
            self.assertEqual(gains('feedforward')['slide'], {'p': 400.0, 'd': 40.0})
            self.assertEqual(gains('computed_torque')['wheel'], {'p': 400.0, 'd': 40.0})
            self.assertEqual(gains('passivity')['slide'], {'p': 20.0, 'd': 20.0})
            # a slow loop gets less: d lag / m = 1/4
            slow = demo_setup.gains_of(robot, file.name, 'feedforward', [0.0, 1.2], 50, DYNAMICS)
            self.assertAlmostEqual(slow['slide']['d'], 25.0)

    def test_parameters_of_every_mode(self):
        robot = robot_of('panda')
        start = demo_setup.start_of(robot)
        for mode in demo_setup.MODES:
            gains = demo_setup.gains_of(robot, path_of('panda'), mode, start, 500, DYNAMICS)
            parameters = demo_setup.controller_parameters(robot, mode, gains, 500)
            controller = parameters['feedforward_controller']['ros__parameters']
            self.assertEqual(controller['joints'], robot.joint_names)
            self.assertEqual('gains' in controller,
                             mode not in ('gravity_compensation', 'pass_through'))
            self.assertEqual('joint_trajectory_controller' in parameters, demo_setup.moves(mode))

    def test_errors_say_what_is_wrong(self):
        with self.assertRaisesRegex(demo_setup.SetupError, 'not XML.*line 1'):
            demo_setup.read_robot('<robot')
        with self.assertRaisesRegex(demo_setup.SetupError, 'robot r has no joint'):
            demo_setup.read_robot('<robot name="r"><link name="l"/></robot>')
        robot = demo_setup.read_robot(TWO_JOINTS)
        with self.assertRaisesRegex(demo_setup.SetupError, 'nowhere.urdf'):
            demo_setup.gains_of(robot, 'nowhere.urdf', 'pd', [0.0, 1.2], 500, DYNAMICS)
        with self.assertRaisesRegex(demo_setup.SetupError, 'wheel'):
            demo_setup.gains_of(robot, path_of('panda'), 'pd', [0.0, 1.2], 500, DYNAMICS)


if __name__ == '__main__':
    unittest.main()
