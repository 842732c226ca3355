#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Sends a trajectory to joint_trajectory_controller and prints how well the robot followed it.

The errors are those of the FeedforwardController's ~/controller_state: reference less measurement.
Set its state_publish_rate to the update rate to have every cycle counted. Without a goal nothing is
sent, and what is printed is how far the robot drifts.

Parameters
----------
controller : of whose ~/controller_state the errors are taken
trajectory_controller : takes the trajectory, by its action follow_joint_trajectory
joints : of the goal, any order and part of the controller's
goal : where they go to from where they are, and back; rad or m
travel_time : for one way, s
settle_time : after which the final error is taken, or the drift; s
tolerance : of the final error, rad or m; exit code 1 if a joint exceeds it. 0: none
timeout : for the controllers to be there, s of the wall clock
report : file for the figures, JSON

"""

import json
import math
import signal
import sys
import time

import rclpy
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


class DemoError(Exception):
    """A demonstration that cannot go on; the text says what to look at."""


def seconds(stamp):
    """Return a time or duration message in seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec


def duration(value):
    """Return seconds as a message."""
    whole = math.floor(value)
    return Duration(sec=int(whole), nanosec=int(round(1e9 * (value - whole))))


def there_and_back(joints, start, goal, travel_time):
    """
    Return a trajectory from start to goal and back, at rest at both ends.

    Velocities and accelerations are given, so joint_trajectory_controller joins the points by
    polynomials of degree five. The first point is at once: from the last reference, not from where
    the robot happens to be.
    """
    trajectory = JointTrajectory(joint_names=joints)
    zeros = [0.0] * len(joints)
    for k, positions in enumerate((start, goal, start)):
        trajectory.points.append(JointTrajectoryPoint(
            positions=positions, velocities=zeros, accelerations=zeros,
            time_from_start=duration(k * travel_time)))
    return trajectory


class TrackingRecord:
    """What a controller's state topic said of one motion."""

    def __init__(self, states):
        self.joints = list(states[0].joint_names)
        self.times = [seconds(state.header.stamp) for state in states]
        self.references = [list(state.reference.positions) for state in states]
        self.errors = [list(state.error.positions) for state in states]
        self.moving = [any(state.reference.velocities) for state in states]

    def motion(self):
        """Return the samples from the first to the last in which the reference moves."""
        moving = [k for k, moves in enumerate(self.moving) if moves]
        if not moving:
            raise DemoError('the reference never moved; is joint_trajectory_controller chained to '
                            'this controller?')
        return range(moving[0], moving[-1] + 1)

    def by_joint(self):
        """Return travel, RMS, peak and final error by joint."""
        motion = self.motion()
        figures = {}
        for j, joint in enumerate(self.joints):
            errors = [abs(self.errors[k][j]) for k in motion]
            path = [self.references[k][j] for k in motion]
            figures[joint] = {
                'travel': max(path) - min(path),
                'rms': math.sqrt(sum(error * error for error in errors) / len(errors)),
                'peak': max(errors),
                'final': abs(self.errors[-1][j]),
            }
        return figures

    def report(self):
        """Return all figures, for people and for programs."""
        motion = self.motion()
        joints = self.by_joint()
        length = self.times[motion[-1]] - self.times[motion[0]]
        return {
            'joints': joints,
            'rms': math.sqrt(sum(f['rms'] ** 2 for f in joints.values()) / len(joints)),
            'peak': max(f['peak'] for f in joints.values()),
            'final': max(f['final'] for f in joints.values()),
            'samples': len(motion),
            'duration': length,
            'longest_gap': max(b - a for a, b in zip(
                self.times[motion[0]:motion[-1]], self.times[motion[0] + 1:motion[-1] + 1])),
        }


class DemoClient:
    """Speaks with the two controllers on behalf of a node that is spun by nobody else."""

    def __init__(self, node, controller='feedforward_controller',
                 trajectory_controller='joint_trajectory_controller'):
        self.node = node
        self.controller = controller
        self.states = []
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self.trajectory_controller = trajectory_controller
        self._action = ActionClient(
            node, FollowJointTrajectory, f'{trajectory_controller}/follow_joint_trajectory')
        self._subscription = node.create_subscription(
            JointTrajectoryControllerState, f'{controller}/controller_state', self.states.append,
            QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE))

    def now(self):
        """Return the time in seconds, by the clock that stamps the controller's states."""
        return 1e-9 * self.node.get_clock().now().nanoseconds

    def wait_for(self, condition, timeout, missing):
        """Spin until the condition holds; after `timeout` seconds raise what is missing."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise DemoError(f'{missing} (waited {timeout:g} s)')
            self._executor.spin_once(timeout_sec=0.05)

    def pause(self, wall_time):
        """Spin for this many seconds."""
        end = time.monotonic() + wall_time
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=end - time.monotonic())

    def wait_for_future(self, future, timeout, missing):
        """Spin until the answer is there and return it."""
        self.wait_for(future.done, timeout, missing)
        return future.result()

    def fresh_state(self, timeout=60.0):
        """Return a state of the active controller that is no older than this call."""
        now = self.now()

        def fresh():
            return (self.states and seconds(self.states[-1].header.stamp) >= now
                    and all(map(math.isfinite, self.states[-1].reference.positions)))

        self.states.clear()
        self.wait_for(
            fresh, timeout,
            f'nothing on {self._subscription.topic_name}; is {self.controller} active, and its '
            'state_publish_rate above zero? See: ros2 control list_controllers')
        return self.states[-1]

    def wait_for_trajectory_controller(self, timeout=60.0):
        """Return when goals can be sent."""
        self.wait_for(self._action.server_is_ready, timeout,
                      f'{self.trajectory_controller} takes no trajectories; is it active? See: '
                      'ros2 control list_controllers')

    def start(self, trajectory):
        """Send a trajectory and return the handle of the goal."""
        goal = FollowJointTrajectory.Goal(trajectory=trajectory)
        handle = self.wait_for_future(
            self._action.send_goal_async(goal), 10.0, 'the trajectory was not answered')
        if not handle.accepted:
            raise DemoError('the trajectory was rejected; the log of the controller manager says '
                            'why')
        return handle

    def finish(self, handle, timeout):
        """Wait for the end of the motion."""
        answer = self.wait_for_future(
            handle.get_result_async(), timeout, 'the trajectory did not come to its end')
        if answer.status != GoalStatus.STATUS_SUCCEEDED:
            raise DemoError(f'the trajectory failed: {answer.result.error_string}')

    def wait_until_stamped(self, stamp, timeout=30.0):
        """Return when the controller's states have reached this time."""
        self.wait_for(lambda: self.states and seconds(self.states[-1].header.stamp) >= stamp,
                      timeout, f'{self.controller} stopped publishing its state')

    def wait_until_moving(self, speed=0.1, timeout=30.0):
        """Return when a joint's reference has this speed."""
        def moving():
            return self.states and max(map(abs, self.states[-1].reference.velocities)) > speed

        self.wait_for(moving, timeout, 'the motion did not begin')

    def settle(self, settle_time):
        """Let this time pass on the controller's clock."""
        self.wait_until_stamped(self.now() + settle_time)

    def measure(self, trajectory, settle_time=0.5, on_the_way=None):
        """
        Follow a trajectory and return the record of it.

        `on_the_way` is called after a quarter of the time.
        """
        begin = seconds(self.fresh_state().header.stamp)
        length = seconds(trajectory.points[-1].time_from_start)
        handle = self.start(trajectory)
        if on_the_way:
            self.wait_until_stamped(begin + length / 4.0)
            on_the_way()
        self.finish(handle, length + 30.0)
        self.settle(settle_time)
        return TrackingRecord(list(self.states))

    def last_reference(self, joints):
        """Return where these joints are to be now; the others are left out."""
        state = self.fresh_state()
        if missing := [joint for joint in joints if joint not in state.joint_names]:
            raise DemoError(f'{self.controller} does not command {", ".join(missing)}')
        place = {name: k for k, name in enumerate(state.joint_names)}
        return [state.reference.positions[place[joint]] for joint in joints]


def print_table(heading, columns, rows):
    """Print numbers by joint; the first column has the names."""
    width = max([len(columns[0]), *(len(row[0]) for row in rows)])
    print(f'\n{heading}\n', flush=True)
    print(f'  {columns[0]:{width}}' + ''.join(f'  {name:>9}' for name in columns[1:]))
    for name, *values in rows:
        print(f'  {name:{width}}' + ''.join(f'  {value:9.2e}' for value in values))
    print(flush=True)


class Demo:
    """The demonstration as a program."""

    def __init__(self, node):
        self.node = node

        def declare(name, default):
            return node.declare_parameter(name, default).value

        self.controller = declare('controller', 'feedforward_controller')
        self.client = DemoClient(
            node, self.controller, declare('trajectory_controller', 'joint_trajectory_controller'))
        self.travel_time = declare('travel_time', 3.0)
        self.settle_time = declare('settle_time', 1.0)
        self.tolerance = declare('tolerance', 0.0)
        self.timeout = declare('timeout', 60.0)
        self.report_file = declare('report', '')
        self.joints = declare('joints', Parameter.Type.STRING_ARRAY) or []
        self.goal = declare('goal', Parameter.Type.DOUBLE_ARRAY) or []
        if len(self.joints) != len(self.goal):
            raise DemoError(f'joints has {len(self.joints)} elements and goal {len(self.goal)}')

    def run(self):
        """Return the exit code."""
        self.client.fresh_state(self.timeout)
        report = self.follow() if self.goal else self.drift()
        if self.report_file:
            with open(self.report_file, 'w', encoding='utf-8') as file:
                json.dump(report, file, indent=2)
        if self.tolerance > 0.0 and report['final'] > self.tolerance:
            print(f'The final error exceeds {self.tolerance:g}.', flush=True)
            return 1
        return 0

    def follow(self):
        self.client.wait_for_trajectory_controller(self.timeout)
        start = self.client.last_reference(self.joints)
        record = self.client.measure(
            there_and_back(self.joints, start, self.goal, self.travel_time), self.settle_time)
        report = record.report()
        print_table(
            f'Tracking error of {self.controller} over {report["samples"]} samples in '
            f'{report["duration"]:.2f} s [rad or m]',
            ['joint', 'travel', 'RMS', 'peak', 'final'],
            [[joint, f['travel'], f['rms'], f['peak'], f['final']]
             for joint, f in report['joints'].items()]
            + [['all', max(f['travel'] for f in report['joints'].values()), report['rms'],
                report['peak'], report['final']]])
        return report

    def drift(self):
        first = self.client.fresh_state(self.timeout)
        self.client.settle(self.settle_time)
        last = self.client.states[-1]
        moved = [abs(b - a) for a, b in zip(first.feedback.positions, last.feedback.positions)]
        print_table(f'Drift of {self.controller} in {self.settle_time:g} s [rad or m]',
                    ['joint', 'drift'], list(zip(last.joint_names, moved)))
        return {'joints': {name: {'final': drift} for name, drift in zip(last.joint_names, moved)},
                'final': max(moved)}


def main():
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    node = Node('demo_trajectory')
    try:
        return Demo(node).run()
    except DemoError as error:
        print(f'demo_trajectory: {error}', file=sys.stderr, flush=True)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        return 1
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    sys.exit(main())
