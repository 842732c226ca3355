# SPDX-License-Identifier: Apache-2.0
"""The server as users start it: services against `dynamics eval`, bad URDF, xacro, component."""

import json
import math
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import launch_testing.actions
import launch_testing.asserts
import rclpy
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from geometry_msgs.msg import Inertia, Vector3, Wrench
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import ComposableNodeContainer
from launch_ros.descriptions import ComposableNode
from realtime_dynamics.msg import JointSpaceMatrix, LinkPayload, LinkWrench
from realtime_dynamics.srv import (
    ComputeForwardDynamics, ComputeInverseDynamics, GetCoriolis, GetGravity, GetJacobian,
    GetMassMatrix, GetRegressor)
from sensor_msgs.msg import JointState

SHARE = Path(get_package_share_directory('realtime_dynamics'))
PANDA = SHARE / 'config' / 'robots' / 'panda.urdf'
DYNAMICS = Path(get_package_prefix('realtime_dynamics')) / 'lib' / 'realtime_dynamics' / 'dynamics'
JOINTS = [f'panda_joint{i}' for i in range(1, 8)]
PATIENCE = 30.0  # s, for what must happen; the machine may be busy

BAD_URDF = """<robot name="broken">
  <link name="base"/><link name="arm"/>
  <joint name="elbow" type="revolute">
    <parent link="base"/><child link="forearm"/><limit effort="1" velocity="1"/>
  </joint>
</robot>
"""
XACRO = f"""<robot name="panda" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="{PANDA}"/>
</robot>
"""


def server(urdf, namespace=''):
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'dynamics.launch.py')),
        launch_arguments={'urdf': str(urdf), 'namespace': namespace}.items())


def generate_test_description():
    files = Path(tempfile.mkdtemp(prefix='launch_dynamics_server_'))
    bad = files / 'bad.urdf'
    bad.write_text(BAD_URDF, encoding='utf-8')
    xacro = files / 'panda.urdf.xacro'
    xacro.write_text(XACRO, encoding='utf-8')
    return LaunchDescription([
        server(PANDA),
        server(bad, 'broken'),
        server(xacro, 'expanded'),
        ComposableNodeContainer(
            name='container', namespace='', package='rclcpp_components',
            executable='component_container', composable_node_descriptions=[ComposableNode(
                package='realtime_dynamics', plugin='realtime_dynamics::DynamicsServer',
                namespace='composed',
                parameters=[{'robot_description': PANDA.read_text(encoding='utf-8')}])]),
        launch_testing.actions.ReadyToTest(),
    ])


def numbers(count, start):
    """Numbers that differ from each other, between -1 and 1."""
    return [math.sin(start + 1.7 * i) for i in range(count)]


def evaluate(lines, compute, *options):
    """What the command line says of the same robot."""
    answer = subprocess.run(
        [str(DYNAMICS), 'eval', str(PANDA), '--compute', compute, *options],
        input='\n'.join(json.dumps(line) for line in lines), stdout=subprocess.PIPE, text=True,
        check=True)
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    for record in records:
        assert 'error' not in record, record
    return records


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


class ServiceTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        rclpy.init()
        cls.node = rclpy.create_node('user')

    @classmethod
    def tearDownClass(cls):
        cls.node.destroy_node()
        rclpy.shutdown()

    def call(self, service, name, namespace='', **fields):
        client = self.node.create_client(service, f'{namespace}/dynamics_server/{name}')
        self.assertTrue(client.wait_for_service(PATIENCE), name)
        future = client.call_async(service.Request(**fields))
        rclpy.spin_until_future_complete(self.node, future, timeout_sec=PATIENCE)
        self.assertTrue(future.done(), name)
        self.node.destroy_client(client)
        return future.result()

    def assert_close(self, got, expected):
        got, expected = list(got), flat(expected)
        self.assertEqual(len(got), len(expected))
        for x, y in zip(got, expected):
            self.assertAlmostEqual(x, y, delta=1e-9 * (1.0 + abs(y)))

    def setUp(self):
        self.k = 3
        self.q, self.v, self.a, self.tau = (numbers(7 * self.k, s) for s in (0.1, 0.2, 0.3, 0.4))
        self.lines = [
            {'q': self.q[7 * i:7 * i + 7], 'v': self.v[7 * i:7 * i + 7],
             'a': self.a[7 * i:7 * i + 7], 'tau': self.tau[7 * i:7 * i + 7]}
            for i in range(self.k)]

    def compare(self, response, got, key, lines=None):
        self.assertTrue(response.success, response.message)
        self.assertEqual(response.joint_names, JOINTS)
        self.assertEqual(response.configurations, self.k)
        self.assert_close(got, [record[key] for record in evaluate(lines or self.lines, key)])

    def test_mass_matrix(self):
        response = self.call(GetMassMatrix, 'get_mass_matrix', positions=self.q)
        self.assertEqual((response.rows, response.columns), (7, 7))
        self.compare(response, response.mass_matrices, 'M')

    def test_gravity(self):
        response = self.call(GetGravity, 'get_gravity', positions=self.q)
        self.compare(response, response.efforts, 'gravity')

    def test_coriolis(self):
        response = self.call(GetCoriolis, 'get_coriolis', positions=self.q, velocities=self.v)
        self.compare(response, response.coriolis_matrices, 'C')

    def test_inverse_dynamics(self):
        response = self.call(ComputeInverseDynamics, 'compute_inverse_dynamics',
                             positions=self.q, velocities=self.v, accelerations=self.a)
        self.compare(response, response.efforts, 'tau')

    def test_wrenches(self):
        wrench = LinkWrench(link='panda_link5', wrench=Wrench(
            torque=Vector3(x=1.0, y=2.0, z=3.0), force=Vector3(x=4.0, y=5.0, z=6.0)))
        response = self.call(ComputeInverseDynamics, 'compute_inverse_dynamics',
                             positions=self.q, velocities=self.v, accelerations=self.a,
                             wrenches=[wrench])
        lines = [dict(line, external={'panda_link5': [1, 2, 3, 4, 5, 6]}) for line in self.lines]
        self.compare(response, response.efforts, 'tau', lines)

    def test_loads_and_friction(self):
        load = LinkPayload(link='panda_link8', inertia=Inertia(
            m=1.5, com=Vector3(x=0.01, y=0.02, z=0.03), ixx=0.1, iyy=0.2, izz=0.3))
        response = self.call(ComputeInverseDynamics, 'compute_inverse_dynamics',
                             positions=self.q, velocities=self.v, accelerations=self.a,
                             payloads=[load], include_friction=True)
        records = evaluate(self.lines, 'tau,friction',
                           '--payload', 'panda_link8,1.5,0.01,0.02,0.03,0.1,0,0,0.2,0,0.3')
        self.assert_close(response.efforts, [x + y for record in records for x, y in
                                             zip(record['tau'], record['friction'])])

    def test_forward_dynamics(self):
        response = self.call(ComputeForwardDynamics, 'compute_forward_dynamics',
                             positions=self.q, velocities=self.v, efforts=self.tau)
        self.compare(response, response.accelerations, 'qdd')

    def test_forward_dynamics_with_the_others_held(self):
        names = ['panda_joint4', 'panda_joint2']
        response = self.call(
            ComputeForwardDynamics, 'compute_forward_dynamics', namespace='/expanded',
            joint_names=names, positions=[0.4, 0.2], velocities=[0.3, 0.1], efforts=[5.0, -5.0])
        self.assertTrue(response.success, response.message)
        line = {'joints': names, 'q': [0.4, 0.2], 'v': [0.3, 0.1], 'tau': [5.0, -5.0]}
        record = evaluate([line], 'qdd', '--joints', ','.join(names))[0]
        self.assert_close(response.accelerations, record['qdd'])

    def test_jacobian(self):
        response = self.call(GetJacobian, 'get_jacobian', positions=self.q)
        self.assertEqual(response.link, 'panda_link8')
        self.assertEqual((response.rows, response.columns), (6, 7))
        records = evaluate(self.lines, 'jacobian')
        self.assert_close(response.jacobians,
                          [record['jacobian'][3:] + record['jacobian'][:3] for record in records])

    def test_regressor(self):
        response = self.call(GetRegressor, 'get_regressor',
                             positions=self.q, velocities=self.v, accelerations=self.a)
        self.assertEqual(response.parameter_names[0], 'm(panda_link1)')
        self.assertEqual((response.rows, response.columns), (7, len(response.parameter_names)))
        records = evaluate(self.lines, 'regressor')
        self.assert_close(response.regressors, [record['regressor'] for record in records])

    def test_xacro(self):
        response = self.call(GetGravity, 'get_gravity', namespace='/expanded', positions=self.q)
        self.compare(response, response.efforts, 'gravity')

    def test_component(self):
        response = self.call(GetGravity, 'get_gravity', namespace='/composed', positions=self.q)
        self.compare(response, response.efforts, 'gravity')

    def test_bad_request(self):
        response = self.call(GetMassMatrix, 'get_mass_matrix', positions=[math.nan] * 7)
        self.assertFalse(response.success)
        self.assertIn("positions[0] (configuration 0, joint 'panda_joint1') is nan",
                      response.message)

    def test_bad_urdf(self, proc_output):
        reason = "link 'forearm' does not exist"
        proc_output.assertWaitFor(reason, timeout=PATIENCE)
        response = self.call(GetMassMatrix, 'get_mass_matrix', namespace='/broken')
        self.assertFalse(response.success)
        self.assertIn('robot_description: ', response.message)
        self.assertIn(reason, response.message)

    def test_topics(self):
        messages = {}

        def keep(topic):
            return lambda message: messages.__setitem__(topic, message)

        for topic, kind in (('feedforward', JointState), ('gravity', JointState),
                            ('mass_matrix', JointSpaceMatrix)):
            self.node.create_subscription(kind, f'/dynamics_server/{topic}', keep(topic), 10)
        publisher = self.node.create_publisher(JointState, '/joint_states', 10)
        state = JointState(name=JOINTS, position=self.q[:7], velocity=self.v[:7])
        end = self.node.get_clock().now().nanoseconds + int(PATIENCE * 1e9)
        while len(messages) < 3 and self.node.get_clock().now().nanoseconds < end:
            publisher.publish(state)
            rclpy.spin_once(self.node, timeout_sec=0.05)
        self.assertEqual(sorted(messages), ['feedforward', 'gravity', 'mass_matrix'])
        line = {'q': self.q[:7], 'v': self.v[:7]}
        record = evaluate([line], 'tau,gravity,M')[0]
        self.assertEqual(list(messages['feedforward'].name), JOINTS)
        self.assert_close(messages['feedforward'].effort, record['tau'])
        self.assert_close(messages['gravity'].effort, record['gravity'])
        self.assert_close(messages['mass_matrix'].data, record['M'])


@launch_testing.post_shutdown_test()
class ShutdownTest(unittest.TestCase):

    def test_all_processes_end_well(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info,
                                               allowable_exit_codes=[0, -signal.SIGINT])
