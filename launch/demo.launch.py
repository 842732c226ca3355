# SPDX-License-Identifier: Apache-2.0
"""
A simulated robot follows a trajectory under a control law, and you see how well.

    ros2 launch realtime_dynamics demo.launch.py
    ros2 launch realtime_dynamics demo.launch.py mode:=pd
    ros2 launch realtime_dynamics demo.launch.py robot:=/path/robot.urdf rviz:=true

All that is needed beyond the URDF is made by demo_setup.py beside this file. `files:=DIRECTORY`
keeps it: the URDF with its <ros2_control> block and the parameters of the controllers, to start
your own from.
"""

import atexit
import os
import shutil
import sys
import tempfile

import yaml
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction, RegisterEventHandler, Shutdown)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import demo_setup  # noqa: E402

PACKAGE = 'realtime_dynamics'

ARGUMENTS = [
    ('robot', 'panda', 'A URDF in config/robots by its name (panda, ur5e, puma560, ...), or '
                       'the path of your URDF or xacro file'),
    ('mode', 'feedforward', 'The control law: ' + ', '.join(demo_setup.MODES)),
    ('controllers', '', 'A parameter file for the controllers, e.g. from config/, instead of mode '
                        'and of one that is made for the robot'),
    ('update_rate', '500', 'Cycles of the controller manager a second, Hz'),
    ('start', '', 'Where the robot starts, rad or m: a number for each joint, with commas'),
    ('travel_time', '', 'For one way of the trajectory, s; else by the velocity limits'),
    ('hardware', '', 'Parameters of the simulated robot: name=value, with spaces'),
    ('trajectory', 'true', 'Whether a trajectory is sent'),
    ('tolerance', '0.0', 'Final error that is an error, rad or m; 0: none'),
    ('once', 'false', 'End with the trajectory; the exit code tells whether the robot arrived'),
    ('report', '', 'A file for the tracking errors, JSON'),
    ('files', '', 'A directory that keeps the URDF and the parameters that were made'),
    ('rviz', 'false', 'Show the robot in RViz'),
]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=demo)])


def demo(context):
    value = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    mode = mode_of(value['controllers']) if value['controllers'] else value['mode']
    if mode not in demo_setup.MODES:
        raise demo_setup.SetupError(f'mode {mode} is none of {", ".join(demo_setup.MODES)}')

    robot = demo_setup.read_robot(description(value['robot']))
    start = start_positions(robot, value['start'])
    goal = demo_setup.goal_of(robot, start)
    travel_time = (positive(float, 'travel_time', value['travel_time']) if value['travel_time']
                   else demo_setup.travel_time(robot, start, goal))

    directory = value['files'] or temporary_directory()
    os.makedirs(directory, exist_ok=True)
    hardware = pairs('hardware', value['hardware'])
    urdf = demo_setup.with_ros2_control(robot, mode, start, hardware)
    urdf_file = os.path.join(directory, 'robot.urdf')
    write(urdf_file, urdf)
    controllers = value['controllers']
    if not controllers:
        update_rate = positive(int, 'update_rate', value['update_rate'])
        dynamics = os.path.join(get_package_prefix(PACKAGE), 'lib', PACKAGE, 'dynamics')
        gains = demo_setup.gains_of(robot, urdf_file, mode, start, update_rate, dynamics)
        parameters = demo_setup.controller_parameters(robot, mode, gains, update_rate)
        controllers = os.path.join(directory, 'controllers.yaml')
        write(controllers, yaml.safe_dump(parameters, sort_keys=False))

    names = ['joint_state_broadcaster', 'feedforward_controller']
    names[1:1] = observers_of(controllers)
    if demo_setup.moves(mode):
        names.append('joint_trajectory_controller')
    spawner = Node(
        package='controller_manager', executable='spawner', output='screen',
        arguments=[*names, '--activate-as-group', '--controller-manager-timeout', '60',
                   '--service-call-timeout', '30', '--switch-timeout', '30'])
    actions = [
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[{'robot_description': ParameterValue(urdf, value_type=str)}]),
        Node(package='controller_manager', executable='ros2_control_node', output='both',
             parameters=[controllers], on_exit=Shutdown()),
        spawner,
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(os.path.join(share(), 'launch', 'dynamics.launch.py'))),
    ]
    if is_true(value['rviz']):
        get_package_prefix('rviz2')  # or nothing is started
        actions.append(Node(
            package='rviz2', executable='rviz2',
            arguments=['-d', os.path.join(share(), 'config', 'demo.rviz'), '-f', robot.root]))
    if is_true(value['trajectory']):
        target = {'joints': robot.joint_names, 'goal': goal} if demo_setup.moves(mode) else {}
        # With the Python that runs this launch file, whichever comes first in PATH.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ['PATH']])
        trajectory = Node(
            package=PACKAGE, executable='demo_trajectory.py', output='screen',
            additional_env={'PATH': path},
            parameters=[{**target, 'travel_time': travel_time, 'report': value['report'],
                         'tolerance': number(float, 'tolerance', value['tolerance'])}])
        actions.append(after(spawner, [trajectory], 'the controllers could not be started'))
        if is_true(value['once']):
            done = Shutdown(reason='the trajectory is done')
            actions.append(after(trajectory, [done], 'the robot did not arrive'))
    return actions


def number(kind, argument, text):
    try:
        return kind(text)
    except ValueError:
        raise demo_setup.SetupError(f'{argument} {text}: give a number')


def positive(kind, argument, text):
    value = number(kind, argument, text)
    if not value > 0:
        raise demo_setup.SetupError(f'{argument} {text}: give a number above zero')
    return value


def pairs(argument, text):
    items = [item.partition('=') for item in text.split()]
    for name, equals, _ in items:
        if not equals:
            raise demo_setup.SetupError(f'{argument} {name}: give name=value')
    return {name: value for name, _, value in items}


def description(robot):
    """Return the URDF of a robot that is named, or given by the path of a URDF or xacro file."""
    path = robot
    if not os.path.isfile(path):
        path = os.path.join(share(), 'config', 'robots', robot + '.urdf')
    if not os.path.isfile(path):
        raise demo_setup.SetupError(
            f'robot {robot}: neither a file nor the name of one in {os.path.dirname(path)}')
    if path.endswith('.xacro'):
        import xacro
        return xacro.process_file(path).toxml()
    with open(path, encoding='utf-8') as file:
        return file.read()


def observers_of(path):
    """Return the names of the ExternalTorqueObservers in a parameter file."""
    with open(path, encoding='utf-8') as file:
        manager = yaml.safe_load(file)['controller_manager']['ros__parameters']
    return [name for name, value in manager.items() if isinstance(value, dict)
            and value.get('type') == 'realtime_dynamics/ExternalTorqueObserver']


def mode_of(controllers):
    """Return the mode of the FeedforwardController in a parameter file."""
    if not os.path.isfile(controllers):
        raise demo_setup.SetupError(f'controllers {controllers}: there is no such file')
    with open(controllers, encoding='utf-8') as file:
        parameters = yaml.safe_load(file)
    try:
        return parameters['feedforward_controller']['ros__parameters']['mode']
    except (KeyError, TypeError):
        raise demo_setup.SetupError(
            f'controllers {controllers}: it has no mode of a feedforward_controller')


def start_positions(robot, text):
    if not text:
        return demo_setup.start_of(robot)
    start = [number(float, 'start', item) for item in text.split(',')]
    if len(start) != len(robot.joints):
        raise demo_setup.SetupError(
            f'start has {len(start)} numbers, but {robot.name} has {len(robot.joints)} joints: '
            + ', '.join(robot.joint_names))
    return start


def after(process, actions, failure):
    """Go on when a process has done its work, and end the launch with an error when it has not."""
    def go_on(event, context):
        if event.returncode == 0:
            return actions
        if context.is_shutdown:
            return []
        raise RuntimeError(failure)

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=go_on))


def temporary_directory():
    """Make a directory that goes with this process."""
    path = tempfile.mkdtemp(prefix='realtime_dynamics_')
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def is_true(text):
    return text.lower() in ('true', '1')


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def share():
    return get_package_share_directory(PACKAGE)
