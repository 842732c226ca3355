# SPDX-License-Identifier: Apache-2.0
"""Every parameter file in config/ is complete: its controllers start and do what they are for."""

import json
import os
import tempfile
import unittest

import launch_testing

from demo_support import demo, PATIENCE, shared

DIRECTORY = tempfile.mkdtemp()
FILES = sorted(name for name in os.listdir(shared('config'))
               if name.endswith('.yaml') and name != 'dynamics_server.yaml')
# Largest error of a joint, rad: at the end of the motion, or of drift.
FINAL = {'pd.yaml': 0.5, 'gravity_compensation.yaml': 1e-6}


@launch_testing.parametrize('name', FILES)
def generate_test_description(name):
    return demo(controllers=shared('config', name), travel_time='1.5',
                report=os.path.join(DIRECTORY, name))


class TestConfig(unittest.TestCase):

    def test_robot_does_as_it_is_told(self, proc_info, name):
        proc_info.assertWaitForShutdown('demo_trajectory.py', timeout=2.0 * PATIENCE)
        self.assertEqual(proc_info['demo_trajectory.py'].returncode, 0)
        with open(os.path.join(DIRECTORY, name), encoding='utf-8') as file:
            report = json.load(file)
        print(f'{name}: {report}')
        self.assertLess(report['final'], FINAL.get(name, 1e-3))
