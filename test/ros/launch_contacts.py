# SPDX-License-Identifier: Apache-2.0
"""Contacts of config/contacts.yaml: who claims them, what is felt, and what the robot does."""

import math
import os
import subprocess
import tempfile
import unittest

import yaml
from ament_index_python.packages import get_package_prefix, PackageNotFoundError
from geometry_msgs.msg import WrenchStamped
from realtime_dynamics.msg import ExternalEffort

from demo_support import demo, DemoTestCase, PATIENCE, shared

OBSERVER = 'external_torque_observer'
BROADCASTER = 'force_torque_sensor_broadcaster'
ADMITTANCE = 'admittance_controller'
FRAME = 'panda_link8'
MASS = 3.0        # kg, that nobody tells the controllers of
GRAVITY = 9.81    # m/s^2


def generate_test_description():
    return demo(controllers=shared('config', 'contacts.yaml'), trajectory='false')


def has(package):
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


class TestContacts(DemoTestCase):

    def setUp(self):
        super().setUp()
        self.wait_for_controllers('active', [OBSERVER])
        self.felt = []
        self.subscription = self.node.create_subscription(
            ExternalEffort, f'/{OBSERVER}/external_effort', self.felt.append, 10)

    def tearDown(self):
        self.node.destroy_subscription(self.subscription)

    def wait_until(self, touched):
        """Wait for a message of the observer that says so, and return it."""
        self.felt.clear()
        self.client.wait_for(
            lambda: any(m.touched == touched for m in self.felt), PATIENCE,
            f'never touched={touched}: {self.felt[-1:]}')
        return next(m for m in self.felt if m.touched == touched)

    def spawn(self, name, parameters):
        """Start a controller with these parameters, as a user does."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'parameters.yaml')
            with open(path, 'w', encoding='utf-8') as file:
                yaml.safe_dump({name: {'ros__parameters': parameters}}, file)
            spawner = os.path.join(
                get_package_prefix('controller_manager'), 'lib', 'controller_manager', 'spawner')
            process = subprocess.run(
                ['/usr/bin/python3', spawner, name, '--param-file', path,
                 '--controller-manager-timeout', '60', '--service-call-timeout', '30',
                 '--switch-timeout', '30'],
                capture_output=True, text=True, timeout=3 * PATIENCE)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)

    def hang(self, mass):
        self.set_payload([self.SIMULATION], mass)

    def go_on(self):
        """Do what ends a reaction."""
        self.switch(deactivate=['joint_trajectory_controller'])
        self.switch(activate=['joint_trajectory_controller'])

    def test_1_nothing_touches_a_robot_that_moves_freely(self):
        self.assert_tracks(self.follow())
        self.assertTrue(self.felt)
        self.assertFalse(any(message.touched for message in self.felt))

    @unittest.skipUnless(has(BROADCASTER), 'force_torque_sensor_broadcaster is not installed')
    def test_2_the_wrench_is_claimed_as_that_of_a_sensor(self):
        self.spawn(BROADCASTER, {
            'type': 'force_torque_sensor_broadcaster/ForceTorqueSensorBroadcaster',
            'sensor_name': OBSERVER, 'frame_id': FRAME})
        wrenches = []
        subscription = self.node.create_subscription(
            WrenchStamped, f'/{BROADCASTER}/wrench', wrenches.append, 10)
        self.hang(MASS)
        self.wait_until(True)
        self.client.pause(1.0)
        force = wrenches[-1].wrench.force
        size = math.hypot(force.x, force.y, force.z)
        print(f'{size} N of {MASS * GRAVITY} N, {self.felt[-1].directions} directions')
        # Dry friction holds a part of it.
        self.assertLess(abs(size - MASS * GRAVITY), 0.3 * MASS * GRAVITY)
        self.assertTrue(self.felt[-1].link)
        self.assertEqual(self.felt[-1].header.frame_id, FRAME)
        self.hang(0.0)
        self.wait_until(False)
        self.node.destroy_subscription(subscription)
        self.go_on()

    @unittest.skipUnless(has(ADMITTANCE) and has('kinematics_interface_kdl'),
                         'admittance_controller is not installed')
    def test_3_and_by_an_admittance_controller(self):
        """It is configured and activated, which is when interfaces are claimed."""
        self.switch(deactivate=['joint_trajectory_controller'])
        six = {'mass': [5.0] * 6, 'damping_ratio': [2.8] * 6, 'stiffness': [200.0] * 6}
        self.spawn(ADMITTANCE, {
            'type': 'admittance_controller/AdmittanceController',
            'joints': self.joints,
            'command_joints': [f'feedforward_controller/{joint}' for joint in self.joints],
            'command_interfaces': ['position'],
            'state_interfaces': ['position', 'velocity'],
            'chainable_command_interfaces': ['position', 'velocity'],
            'kinematics': {
                'plugin_name': 'kinematics_interface_kdl/KinematicsInterfaceKDL',
                'plugin_package': 'kinematics_interface', 'base': self.robot.root, 'tip': FRAME,
                'alpha': 0.0005},
            'ft_sensor': {'name': OBSERVER, 'frame': {'id': FRAME}, 'filter_coefficient': 0.05},
            'control': {'frame': {'id': FRAME}},
            'fixed_world_frame': {'frame': {'id': self.robot.root}},
            'gravity_compensation': {
                'frame': {'id': FRAME}, 'CoG': {'pos': [0.0, 0.0, 0.0], 'force': 0.0}},
            'admittance': {'selected_axes': [True] * 6, **six}})
        self.assertEqual(self.controllers()[ADMITTANCE], 'active')
        self.client.pause(0.5)
        self.assertEqual(self.controllers()[ADMITTANCE], 'active')
        self.switch(deactivate=[ADMITTANCE])
        self.switch(activate=['joint_trajectory_controller'])

    def test_3b_a_load_that_it_is_told_of_is_no_contact(self):
        self.set_payload([self.SIMULATION, 'feedforward_controller', OBSERVER], 0.5, 1.0)
        self.client.settle(1.5)
        self.assertFalse(self.felt[-1].touched)
        self.assertLess(max(map(abs, self.felt[-1].efforts)), 0.5)
        self.set_payload([self.SIMULATION, 'feedforward_controller', OBSERVER], 0.0, 1.0)
        self.client.settle(1.5)
        self.assertFalse(self.felt[-1].touched)

    def test_4_a_push_on_the_way_stops_the_robot(self):
        self.client.start(self.there_and_back())
        self.client.wait_until_moving()
        self.hang(MASS)
        self.wait_until(True)
        self.hang(0.0)
        self.client.settle(1.0)
        state = self.client.states[-1]
        self.assertEqual(max(map(abs, state.reference.velocities)), 0.0)
        self.client.pause(2.5)  # the trajectory goes on without it
        self.assertEqual(
            list(self.client.states[-1].reference.positions), list(state.reference.positions))
        self.wait_until(False)
        self.go_on()
        report = self.follow()
        self.assertLess(report['final'], 1e-3, report)

    def test_5_the_observer_does_not_stop_before_those_who_need_it(self):
        """Nor do they start without it; together, in one switch, they do both."""
        # The broadcaster of joint states claims all states that are there when it starts.
        everyone = [OBSERVER, 'joint_state_broadcaster', 'feedforward_controller',
                    'joint_trajectory_controller']
        if BROADCASTER in self.controllers():
            everyone.append(BROADCASTER)
        answer = self.try_to_switch(deactivate=[OBSERVER])
        print(f'observer alone off: {answer.ok} {answer.message}')
        self.assertFalse(answer.ok)
        self.wait_for_controllers('active', everyone)
        self.switch(deactivate=everyone)
        answer = self.try_to_switch(activate=['feedforward_controller'])
        print(f'the other alone on: {answer.ok} {answer.message}')
        self.wait_for_controllers('inactive', everyone)
        self.switch(activate=everyone)
        self.assert_tracks(self.follow())
