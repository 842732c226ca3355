# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch ... once:=true` ends with the trajectory, and its exit code tells how it ended."""

import unittest

from demo_support import PATIENCE
from launch import LaunchDescription
from launch.actions import ExecuteProcess
import launch_testing
from launch_testing.actions import ReadyToTest
import launch_testing.markers


@launch_testing.parametrize('mode, exit_code', [('feedforward', 0), ('pd', 1)])
@launch_testing.markers.keep_alive
def generate_test_description(mode, exit_code):
    demo = ExecuteProcess(
        cmd=['ros2', 'launch', 'realtime_dynamics', 'demo.launch.py', 'once:=true',
             'tolerance:=0.001', f'mode:={mode}'])
    return LaunchDescription([demo, ReadyToTest()]), {'demo': demo}


class TestExitCode(unittest.TestCase):

    def test_exit_code_tells_whether_the_robot_arrived(self, proc_info, demo, exit_code):
        proc_info.assertWaitForShutdown(demo, timeout=2.0 * PATIENCE)
        self.assertEqual(proc_info[demo].returncode, exit_code)
