# SPDX-License-Identifier: Apache-2.0
"""
What a demonstration needs beyond a plain URDF.

A simulated robot in a <ros2_control> block, the controllers' parameters and a short trajectory, all
of them from the joints of the URDF and the robot's own mass matrix. Nothing here needs ROS.
"""

import json
import math
import random
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

# The ways of use: parameters of the FeedforwardController.
MODES = {
    'feedforward': {'mode': 'feedforward', 'compensation': 'full'},
    'pd': {'mode': 'feedforward', 'compensation': 'none'},
    'pd_gravity': {'mode': 'feedforward', 'compensation': 'gravity'},
    'computed_torque': {'mode': 'computed_torque'},
    'passivity': {'mode': 'passivity'},
    'pass_through': {'mode': 'pass_through', 'compensation': 'full'},
    'gravity_compensation': {'mode': 'gravity_compensation'},
}

# Usual poses of the robots in config/robots, by the name in the URDF; rad.
READY = {
    'panda': (0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4),
    'ur5e': (0.0, -math.pi / 2, math.pi / 2, -math.pi / 2, -math.pi / 2, 0.0),
}

HARDWARE = 'simulated_robot'  # by this name it is found among nodes and services
BANDWIDTH = 20.0  # of the position loops, rad/s
MARGIN = 0.2      # share of a joint's range that a start keeps from either end
LARGEST_STEP = {'revolute': 0.5, 'continuous': 0.5, 'prismatic': 0.1}  # rad, m


class SetupError(Exception):
    """A robot or an argument that the demonstration cannot use."""


@dataclass
class Joint:
    """A joint that can be commanded."""

    name: str
    kind: str
    lower: float
    upper: float
    velocity: float

    @property
    def range(self):
        return self.upper - self.lower


@dataclass
class Robot:
    """A URDF and its joints of one degree of freedom that mimic no other, in the file's order."""

    name: str
    root: str
    joints: list
    urdf: ElementTree.Element

    @property
    def joint_names(self):
        return [joint.name for joint in self.joints]


def read_robot(urdf):
    """Read the text of a URDF."""
    try:
        tree = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise SetupError(f'the URDF is not XML: {error}')
    joints = [
        _read_joint(element) for element in tree.findall('joint')
        if element.get('type') in LARGEST_STEP and element.find('mimic') is None
    ]
    if not joints:
        raise SetupError(f'robot {tree.get("name")} has no joint that could move')
    children = {child.get('link') for child in tree.findall('joint/child')}
    roots = [link.get('name') for link in tree.findall('link') if link.get('name') not in children]
    return Robot(tree.get('name'), roots[0] if roots else '', joints, tree)


def _read_joint(element):
    limit = element.find('limit')
    limit = {} if limit is None else limit.attrib
    unbounded = element.get('type') == 'continuous'
    return Joint(
        element.get('name'), element.get('type'),
        -math.inf if unbounded else float(limit.get('lower', 0.0)),
        math.inf if unbounded else float(limit.get('upper', 0.0)),
        float(limit.get('velocity', 0.0)))


def start_of(robot):
    """Where the robot starts: its usual pose, else as near to zero as is well inside the limits."""
    if robot.name in READY and len(READY[robot.name]) == len(robot.joints):
        return list(READY[robot.name])
    return [_well_inside(joint) for joint in robot.joints]


def _well_inside(joint):
    if math.isinf(joint.range):
        return 0.0
    room = MARGIN * joint.range
    return min(max(0.0, joint.lower + room), joint.upper - room)


def goal_of(robot, start):
    """Turn every joint a little, towards the middle of its range."""
    goal = []
    for joint, position in zip(robot.joints, start):
        step = min(LARGEST_STEP[joint.kind], MARGIN * joint.range)
        towards_lower = position > (joint.lower + joint.upper) / 2
        goal.append(position - step if towards_lower else position + step)
    return goal


def travel_time(robot, start, goal, slowest=2.0, share=0.5):
    """Time for one way, s: no joint exceeds this share of its velocity limit."""
    peak = 15.0 / 8.0  # of the speed along a quintic from rest to rest, over the mean
    needed = [
        peak * abs(b - a) / (share * joint.velocity)
        for joint, a, b in zip(robot.joints, start, goal) if joint.velocity > 0.0
    ]
    return max([slowest, *needed])


def with_ros2_control(robot, mode, start, hardware=None):
    """
    Return the URDF with the robot as a SimulatedSystem.

    `hardware` has further parameters of the simulated robot by name.
    """
    for block in robot.urdf.findall('ros2_control'):
        robot.urdf.remove(block)
    block = ElementTree.SubElement(robot.urdf, 'ros2_control', name=HARDWARE, type='system')
    parameters = ElementTree.SubElement(block, 'hardware')
    ElementTree.SubElement(parameters, 'plugin').text = 'realtime_dynamics/SimulatedSystem'
    for name, value in (hardware or {}).items():
        ElementTree.SubElement(parameters, 'param', name=name).text = str(value)
    commands = ['position', 'velocity', 'effort'] if mode == 'pass_through' else ['effort']
    for joint, position in zip(robot.joints, start):
        element = ElementTree.SubElement(block, 'joint', name=joint.name)
        for name in commands:
            ElementTree.SubElement(element, 'command_interface', name=name)
        for name in ('position', 'velocity', 'acceleration', 'effort'):
            state = ElementTree.SubElement(element, 'state_interface', name=name)
            if name == 'position':
                ElementTree.SubElement(state, 'param', name='initial_value').text = repr(position)
    ElementTree.indent(robot.urdf)
    return ElementTree.tostring(robot.urdf, encoding='unicode')


def gains_of(robot, urdf_file, mode, start, update_rate, dynamics):
    """
    Return gains of a critically damped loop at BANDWIDTH from the robot's mass matrix.

    A joint's inertia is the diagonal element of M at the start, but no more than keeps the sampled
    loop clear of its stability bound in any pose, also where the other joints give way:
    d (M^-1)_jj lag <= 1/4, the lag being half a period.
    """
    matrices = _mass_matrices(robot, urdf_file, [start, *_poses(robot)], dynamics)
    gains = {}
    for j, name in enumerate(robot.joint_names):
        most_yielding = max(matrix['Minv'][j][j] for matrix in matrices)
        bound = update_rate / (4.0 * BANDWIDTH * most_yielding)
        gains[name] = _law_gains(mode, min(matrices[0]['M'][j][j], bound))
    return gains


def _poses(robot, count=200):
    """Return poses all over the joints' ranges, the same ones every time."""
    numbers = random.Random(1)
    return [
        [numbers.uniform(max(joint.lower, -math.pi), min(joint.upper, math.pi))
         for joint in robot.joints]
        for _ in range(count)
    ]


def _mass_matrices(robot, urdf_file, poses, dynamics):
    """Return M and its inverse in each pose, by the command `dynamics eval`."""
    requests = [json.dumps({'joints': robot.joint_names, 'q': pose}) for pose in poses]
    command = [dynamics, 'eval', urdf_file, '--compute', 'M,Minv']
    answer = subprocess.run(command, input='\n'.join(requests), capture_output=True, text=True)
    if answer.returncode != 0:
        raise SetupError(answer.stderr.strip())
    matrices = [json.loads(line) for line in answer.stdout.splitlines()]
    for matrix in matrices:
        if 'error' in matrix:
            raise SetupError(matrix['error'])
        if matrix['Minv'] is None:
            raise SetupError(f'the mass matrix of {robot.name} is singular: a link at the end of a '
                             'chain has no inertia')
    return matrices


def _law_gains(mode, inertia):
    p, d = inertia * BANDWIDTH**2, 2.0 * inertia * BANDWIDTH
    if mode == 'computed_torque':
        p, d = BANDWIDTH**2, 2.0 * BANDWIDTH
    elif mode == 'passivity':
        p, d = BANDWIDTH, inertia * BANDWIDTH
    return {'p': float(f'{p:.4g}'), 'd': float(f'{d:.4g}')}


def controller_parameters(robot, mode, gains, update_rate):
    """Return the parameter file of all controllers as a dictionary."""
    parameters = {
        'controller_manager': {
            'update_rate': update_rate,
            'joint_state_broadcaster': {'type': 'joint_state_broadcaster/JointStateBroadcaster'},
            'feedforward_controller': {'type': 'realtime_dynamics/FeedforwardController'},
        },
        'feedforward_controller': {
            'joints': robot.joint_names,
            **MODES[mode],
            'soft_start': 0.0,  # nothing else bears the simulated robot meanwhile
            'state_publish_rate': float(update_rate),  # the tracking error of every cycle
        },
    }
    if mode not in ('gravity_compensation', 'pass_through'):
        parameters['feedforward_controller']['gains'] = gains
    if moves(mode):
        parameters['controller_manager']['joint_trajectory_controller'] = {
            'type': 'joint_trajectory_controller/JointTrajectoryController'}
        parameters['joint_trajectory_controller'] = {
            'joints': robot.joint_names,
            'command_joints': [f'feedforward_controller/{name}' for name in robot.joint_names],
            'command_interfaces': ['position', 'velocity', 'acceleration'],
            'state_interfaces': ['position', 'velocity'],
        }
    return {node: {'ros__parameters': values} for node, values in parameters.items()}


def moves(mode):
    """Tell whether a trajectory is followed; a gravity-compensated robot is moved by hand."""
    return mode != 'gravity_compensation'
