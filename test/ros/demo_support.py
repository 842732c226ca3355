# SPDX-License-Identifier: Apache-2.0
"""What the launch tests of demo.launch.py share."""

import importlib.util
import os
import time
import unittest

import rclpy
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from controller_manager_msgs.srv import (
    ListControllers, ListHardwareComponents, SetHardwareComponentState, SwitchController)
from geometry_msgs.msg import Vector3
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from lifecycle_msgs.msg import State
from rclpy.node import Node
from realtime_dynamics.srv import SetPayload

PACKAGE = 'realtime_dynamics'
PATIENCE = 60.0  # s, for whatever has to happen at some time on a machine with much else to do
CHAIN = ['feedforward_controller', 'joint_trajectory_controller']


def installed(*path):
    return os.path.join(get_package_prefix(PACKAGE), 'lib', PACKAGE, *path)


def shared(*path):
    return os.path.join(get_package_share_directory(PACKAGE), *path)


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


demo_trajectory = load('demo_trajectory', installed('demo_trajectory.py'))
demo_setup = load('demo_setup', shared('launch', 'demo_setup.py'))


def demo(**arguments):
    """Return a launch description with the demonstration in it."""
    source = PythonLaunchDescriptionSource(shared('launch', 'demo.launch.py'))
    return LaunchDescription([
        IncludeLaunchDescription(source, launch_arguments=arguments.items()), ReadyToTest()])


class DemoTestCase(unittest.TestCase):
    """A panda with all its controllers active and nobody moving it."""

    SIMULATION = demo_setup.HARDWARE  # the node of the simulated robot

    @classmethod
    def setUpClass(cls):
        rclpy.init()
        cls.node = Node('launch_test')
        cls.client = demo_trajectory.DemoClient(cls.node)
        with open(shared('config', 'robots', 'panda.urdf'), encoding='utf-8') as file:
            cls.robot = demo_setup.read_robot(file.read())
        cls.joints = cls.robot.joint_names

    @classmethod
    def tearDownClass(cls):
        cls.node.destroy_node()
        rclpy.shutdown()

    def setUp(self):
        self.wait_for_controllers('active')
        self.client.fresh_state(PATIENCE)
        self.client.wait_for_trajectory_controller(PATIENCE)

    # --- services ---------------------------------------------------------------------------------

    def call(self, kind, service, **fields):
        return self.call_all(kind, [service], **fields)[0]

    def call_all(self, kind, services, **fields):
        """Call several services at the same time and return their answers."""
        clients = [self.node.create_client(kind, name) for name in services]
        for client in clients:
            self.client.wait_for(
                client.service_is_ready, PATIENCE, f'no service {client.srv_name}')
        futures = [client.call_async(kind.Request(**fields)) for client in clients]
        answers = [
            self.client.wait_for_future(future, PATIENCE, f'no answer from {client.srv_name}')
            for client, future in zip(clients, futures)
        ]
        for client in clients:
            self.node.destroy_client(client)
        return answers

    def controllers(self):
        answer = self.call(ListControllers, '/controller_manager/list_controllers')
        return {controller.name: controller.state for controller in answer.controller}

    def wait_for_controllers(self, state, names=CHAIN):
        end = time.monotonic() + PATIENCE
        while True:
            states = self.controllers()
            if all(states.get(name) == state for name in names):
                return
            self.assertLess(time.monotonic(), end, f'{names} not {state}: {states}')
            self.client.pause(0.1)

    def try_to_switch(self, activate=(), deactivate=()):
        return self.call(
            SwitchController, '/controller_manager/switch_controller',
            activate_controllers=list(activate), deactivate_controllers=list(deactivate),
            strictness=SwitchController.Request.STRICT, activate_asap=True)

    def switch(self, activate=(), deactivate=()):
        answer = self.try_to_switch(activate, deactivate)
        self.assertTrue(answer.ok, answer.message)

    def hardware_state(self):
        answer = self.call(ListHardwareComponents, '/controller_manager/list_hardware_components')
        component, = answer.component
        return component.state.label

    def set_hardware_state(self, state):
        answer = self.call(
            SetHardwareComponentState, '/controller_manager/set_hardware_component_state',
            name=demo_setup.HARDWARE, target_state=State(id=state))
        self.assertTrue(answer.ok, f'the hardware is {answer.state.label}')

    def set_payload(self, nodes, mass, transition_time=0.0):
        """Tell these nodes of a point mass a little beyond the flange, or that it is off."""
        answers = self.call_all(
            SetPayload, [f'{node}/set_payload' for node in nodes], link='panda_link8', mass=mass,
            center_of_mass=Vector3(z=0.05), transition_time=transition_time)
        for answer in answers:
            self.assertTrue(answer.success, answer.message)

    # --- motion -----------------------------------------------------------------------------------

    def there_and_back(self, travel_time=2.0):
        """Return the demonstration's trajectory, from where the robot is to be now."""
        start = self.client.last_reference(self.joints)
        return demo_trajectory.there_and_back(
            self.joints, start, demo_setup.goal_of(self.robot, start), travel_time)

    def follow(self, travel_time=2.0, settle_time=0.5):
        """Follow the trajectory and return the report of the tracking errors."""
        return self.client.measure(self.there_and_back(travel_time), settle_time).report()

    def assert_tracks(self, report):
        self.assertLess(report['final'], 1e-3, report)
        self.assertLess(report['peak'], 5e-3, report)
