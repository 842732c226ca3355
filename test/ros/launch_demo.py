# SPDX-License-Identifier: Apache-2.0
"""
The demonstration as users start it: feed-forward tracks, the same gains alone do not.

Requires a final error below 1e-3 rad and a peak below 5e-3 rad of feed-forward, and that PD alone
has many times its RMS error.
"""

import json
import os
import tempfile
import unittest

import launch_testing
import launch_testing.asserts

from demo_support import demo, PATIENCE

DIRECTORY = tempfile.mkdtemp()


def report_file(mode):
    return os.path.join(DIRECTORY, mode + '.json')


def read_report(mode):
    with open(report_file(mode), encoding='utf-8') as file:
        return json.load(file)


@launch_testing.parametrize('mode', ['feedforward', 'pd'])
def generate_test_description(mode):
    return demo(mode=mode, report=report_file(mode), files=os.path.join(DIRECTORY, mode))


class TestDemo(unittest.TestCase):

    def test_tracking_error(self, proc_info, mode):
        proc_info.assertWaitForShutdown('demo_trajectory.py', timeout=2.0 * PATIENCE)
        self.assertEqual(proc_info['demo_trajectory.py'].returncode, 0)
        report = read_report(mode)
        print(f'{mode}: {report}')
        self.assertEqual(len(report['joints']), 7)
        self.assertTrue(all(joint['travel'] > 0.4 for joint in report['joints'].values()), report)
        if mode == 'feedforward':
            self.assertLess(report['final'], 1e-3)
            self.assertLess(report['peak'], 5e-3)
        else:
            self.assertGreater(report['rms'], 20.0 * read_report('feedforward')['rms'])
            self.assertGreater(report['peak'], 10.0 * read_report('feedforward')['peak'])

    def test_files_are_kept(self, mode):
        self.assertEqual(
            sorted(os.listdir(os.path.join(DIRECTORY, mode))), ['controllers.yaml', 'robot.urdf'])


@launch_testing.post_shutdown_test()
class TestShutdown(unittest.TestCase):

    def test_table_is_printed(self, proc_output):
        for text in ('Tracking error of feedforward_controller', 'RMS       peak      final'):
            launch_testing.asserts.assertInStdout(proc_output, text, 'demo_trajectory.py')

    def test_all_end_in_peace(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
