# SPDX-License-Identifier: Apache-2.0
"""joint_trajectory_controller comes and goes while the FeedforwardController holds the robot."""

from demo_support import demo, DemoTestCase


def generate_test_description():
    return demo(trajectory='false')


class TestChain(DemoTestCase):

    def positions(self):
        return list(self.client.fresh_state().feedback.positions)

    def largest_excursion(self, since):
        """Return how far any joint has been from there in the states received."""
        return max(abs(a - b) for state in self.client.states
                   for a, b in zip(state.feedback.positions, since))

    def test_switching_makes_no_jump(self):
        self.assert_tracks(self.follow())
        rest = self.positions()
        for _ in range(3):
            self.client.states.clear()
            self.switch(deactivate=['joint_trajectory_controller'])
            self.assertEqual(self.controllers()['feedforward_controller'], 'active')
            self.client.pause(0.5)
            self.switch(activate=['joint_trajectory_controller'])
            self.assertEqual(self.controllers()['feedforward_controller'], 'active')
            self.client.pause(0.5)
            excursion = self.largest_excursion(rest)
            print(f'excursion {excursion}')
            self.assertLess(excursion, 1e-3)
        self.assert_tracks(self.follow())

    def test_switched_off_on_the_way(self):
        """The robot comes to rest where its last reference was, and goes on from there."""
        self.client.start(self.there_and_back())
        self.client.wait_until_moving()
        self.switch(deactivate=['joint_trajectory_controller'])
        self.client.settle(1.0)
        state = self.client.states[-1]
        self.assertEqual(max(map(abs, state.reference.velocities)), 0.0)
        # Stopped short, joints stay where friction holds them against p times the error.
        self.assertLess(max(map(abs, state.error.positions)), 1e-2)
        self.assertLess(max(map(abs, state.feedback.velocities)), 1e-3)
        self.switch(activate=['joint_trajectory_controller'])
        report = self.follow()
        self.assertLess(report['final'], 1e-3, report)
        self.assertLess(report['peak'], 2e-2, report)
