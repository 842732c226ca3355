# SPDX-License-Identifier: Apache-2.0
"""The dynamics server alone, for any robot.

    ros2 launch realtime_dynamics dynamics.launch.py urdf:=/path/to/robot.urdf
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def read_description(path):
    """The URDF in a file; a file whose name ends in .xacro is expanded first."""
    if not Path(path).is_file():
        raise RuntimeError(f"urdf: there is no file '{path}'; give the path of a .urdf or .xacro")
    if not path.endswith('.xacro'):
        return Path(path).read_text(encoding='utf-8')
    try:
        import xacro
    except ImportError as error:
        raise RuntimeError(
            f"urdf: '{path}' needs the package xacro, which is not installed") from error
    return xacro.process_file(path).toxml()


def make_server(context):
    urdf = LaunchConfiguration('urdf').perform(context)
    parameters = [LaunchConfiguration('params_file').perform(context),
                  {'use_sim_time': ParameterValue(LaunchConfiguration('use_sim_time'),
                                                  value_type=bool)}]
    if urdf:
        parameters.append(
            {'robot_description': ParameterValue(read_description(urdf), value_type=str)})
    return [Node(package='realtime_dynamics', executable='dynamics_server',
                 name='dynamics_server', namespace=LaunchConfiguration('namespace'),
                 parameters=parameters, output='screen')]


def generate_launch_description():
    defaults = Path(get_package_share_directory('realtime_dynamics')) / 'config'
    return LaunchDescription([
        DeclareLaunchArgument(
            'urdf', default_value='',
            description='Path of the robot as .urdf or .xacro. Empty: the server waits for the '
                        'topic robot_description.'),
        DeclareLaunchArgument(
            'params_file', default_value=str(defaults / 'dynamics_server.yaml'),
            description='Parameters of the server; start from a copy of the default.'),
        DeclareLaunchArgument(
            'namespace', default_value='',
            description='Namespace of the server and of the topics that it listens to.'),
        DeclareLaunchArgument(
            'use_sim_time', default_value='false',
            description='Whether time comes from /clock.'),
        OpaqueFunction(function=make_server),
    ])
