# SPDX-License-Identifier: Apache-2.0
"""The robot picks something up while it moves, with and without the controller being told."""

from realtime_dynamics.srv import WeighLoad

from demo_support import demo, DemoTestCase

MASS = 1.0        # kg
TRANSITION = 1.0  # s in which the gripper takes its weight


def generate_test_description():
    return demo(trajectory='false')


class TestPayload(DemoTestCase):

    def pick_up(self, nodes):
        """Pick it up on the way, and return the report of the whole motion."""
        report = self.client.measure(
            self.there_and_back(),
            on_the_way=lambda: self.set_payload(nodes, MASS, TRANSITION)).report()
        print(f'{nodes} told: {report}')
        return report

    def test_load_in_flight(self):
        everyone = [self.SIMULATION, 'feedforward_controller']
        told = self.pick_up(everyone)
        self.assertLess(told['final'], 1e-3, told)

        self.set_payload(everyone, 0.0, TRANSITION)
        self.client.settle(2.0)
        untold = self.pick_up([self.SIMULATION])
        self.assertGreater(untold['final'], 10.0 * told['final'])
        # The two are told at almost the same time. How far apart that is, and with it the peak, is
        # a matter of the machine's load.
        self.assertGreater(untold['peak'], told['peak'])

        # Told late, the robot begins where friction holds it, but ends where it should.
        self.set_payload(['feedforward_controller'], MASS, TRANSITION)
        self.client.settle(2.0)
        late = self.follow()
        self.assertLess(late['final'], 1e-3, late)
        self.assertLess(late['rms'], 0.1 * untold['rms'])

    def weigh(self, **fields):
        return self.call(WeighLoad, 'feedforward_controller/weigh_load', **fields)

    def test_load_that_is_weighed(self):
        self.assertFalse(self.weigh(start=False).success)  # nothing is being weighed
        self.assertFalse(self.weigh(start=True, link='nose').success)
        everyone = [self.SIMULATION, 'feedforward_controller']
        self.set_payload(everyone, 0.0)
        self.client.settle(1.0)
        self.set_payload([self.SIMULATION], MASS)
        self.client.settle(1.0)
        answer = self.weigh(start=True, link='panda_link8')
        self.assertTrue(answer.success, answer.message)
        untold = self.follow()
        answer = self.weigh(start=False, apply=True, transition_time=TRANSITION)
        self.assertTrue(answer.success, answer.message)
        print(f'{answer.mass} ± {answer.mass_deviation} kg at {answer.center_of_mass.z} m')
        self.assertEqual(answer.weighed_link, 'panda_link8')
        self.assertLess(abs(answer.mass - MASS), 0.1)
        self.client.settle(2.0)
        told = self.follow()
        self.assertLess(told['rms'], 0.3 * untold['rms'])
