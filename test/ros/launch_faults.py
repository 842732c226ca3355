# SPDX-License-Identifier: Apache-2.0
"""What breaks stops the whole chain without effort, and once it is mended all goes on."""

from demo_support import CHAIN, demo, DemoTestCase, PATIENCE
from lifecycle_msgs.msg import State
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool


def generate_test_description():
    return demo(trajectory='false')


class TestFaults(DemoTestCase):

    def inject(self, fault, on=True):
        answer = self.call(SetBool, f'{self.SIMULATION}/inject_{fault}', data=on)
        self.assertTrue(answer.success, answer.message)

    def break_on_the_way(self, fault):
        """Break something while the robot moves; return when the chain has stopped."""
        self.client.start(self.there_and_back())
        self.client.wait_until_moving()
        self.inject(fault)
        self.wait_for_controllers('inactive')

    def assert_drives_are_off(self):
        """The drives report no effort, and brakes hold the robot."""
        received = []
        subscription = self.node.create_subscription(
            JointState, '/joint_states', received.append, 10)

        def off():
            return (received and not any(received[-1].effort)
                    and max(map(abs, received[-1].velocity)) < 1e-9)

        self.client.wait_for(off, PATIENCE, 'the drives are not off')
        self.node.destroy_subscription(subscription)

    def assert_all_goes_on(self):
        self.switch(activate=CHAIN)
        self.wait_for_controllers('active')
        self.client.settle(0.5)
        self.assert_tracks(self.follow())

    def test_hardware_that_cannot_be_read(self):
        self.recover_from('read_error')

    def test_hardware_that_cannot_be_written(self):
        self.recover_from('write_error')

    def recover_from(self, fault):
        self.assert_tracks(self.follow())
        self.break_on_the_way(fault)
        self.assertEqual(self.hardware_state(), 'unconfigured')
        self.inject(fault, False)
        self.set_hardware_state(State.PRIMARY_STATE_INACTIVE)
        self.set_hardware_state(State.PRIMARY_STATE_ACTIVE)
        self.switch(activate=['joint_state_broadcaster'])
        self.assert_drives_are_off()
        self.assert_all_goes_on()

    def test_state_that_is_not_a_number(self):
        self.assert_tracks(self.follow())
        self.break_on_the_way('nan_state')
        self.assertEqual(self.hardware_state(), 'active')
        self.inject('nan_state', False)
        self.assert_drives_are_off()
        self.assert_all_goes_on()
