# SPDX-License-Identifier: Apache-2.0
"""A server without a URDF of its own: the description comes late, is bad, changes."""

import signal
import time
import unittest
from pathlib import Path

import launch_testing.actions
import launch_testing.asserts
import rclpy
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from rclpy.qos import DurabilityPolicy, QoSProfile
from realtime_dynamics.srv import GetGravity
from std_msgs.msg import String

SHARE = Path(get_package_share_directory('realtime_dynamics'))
ROBOTS = SHARE / 'config' / 'robots'
PATIENCE = 30.0  # s, for what must happen; the machine may be busy


def generate_test_description():
    return LaunchDescription([
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'dynamics.launch.py'))),
        launch_testing.actions.ReadyToTest(),
    ])


class DescriptionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        rclpy.init()
        cls.node = rclpy.create_node('user')
        cls.publisher = cls.node.create_publisher(
            String, '/robot_description',
            QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        cls.client = cls.node.create_client(GetGravity, '/dynamics_server/get_gravity')

    @classmethod
    def tearDownClass(cls):
        cls.node.destroy_node()
        rclpy.shutdown()

    def gravity(self, joint):
        self.assertTrue(self.client.wait_for_service(PATIENCE))
        future = self.client.call_async(
            GetGravity.Request(joint_names=[joint], positions=[0.5]))
        rclpy.spin_until_future_complete(self.node, future, timeout_sec=PATIENCE)
        self.assertTrue(future.done())
        return future.result()

    def wait_for(self, joint, condition):
        end = time.monotonic() + PATIENCE
        while not condition(response := self.gravity(joint)):
            self.assertLess(time.monotonic(), end, response)
            time.sleep(0.05)
        return response

    def test_story(self, proc_output):
        proc_output.assertWaitFor('Waiting for /robot_description', timeout=PATIENCE)
        response = self.gravity('panda_joint2')
        self.assertFalse(response.success)
        self.assertIn('no robot_description yet', response.message)

        self.publisher.publish(String(data='<robot name="half"><link name="a"/><joint'))
        response = self.wait_for('panda_joint2', lambda r: 'robot_description: ' in r.message)
        proc_output.assertWaitFor(response.message, timeout=PATIENCE)

        self.publisher.publish(String(data=(ROBOTS / 'panda.urdf').read_text()))
        panda = self.wait_for('panda_joint2', lambda r: r.success)

        self.publisher.publish(String(data='<robot name="empty"/>'))
        proc_output.assertWaitFor('the robot before it stays in use', timeout=PATIENCE)
        self.assertEqual(self.gravity('panda_joint2').efforts, panda.efforts)

        self.publisher.publish(String(data=(ROBOTS / 'ur5e.urdf').read_text()))
        self.wait_for('shoulder_lift_joint', lambda r: r.success)
        self.assertIn("'panda_joint2' is not a moving joint",
                      self.gravity('panda_joint2').message)


@launch_testing.post_shutdown_test()
class ShutdownTest(unittest.TestCase):

    def test_all_processes_end_well(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info,
                                               allowable_exit_codes=[0, -signal.SIGINT])
