# SPDX-License-Identifier: Apache-2.0
"""
Many clients of dynamics_server in one process, each with a call under way at all times.

Takes the number of clients, of calls of each, and a file: a JSON list of questions and answers with
the keys q, gravity and M, one for each client. Prints how many calls were answered rightly.
"""

import json
import sys

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from realtime_dynamics.srv import GetGravity, GetMassMatrix


class Client:
    """Asks for the mass matrix and for gravity by turns, as soon as it has its answer."""

    def __init__(self, node, calls, expected):
        self.calls = calls  # that are still to be answered
        self.right = 0
        self.positions = expected['q']
        mass_matrix = [x for row in expected['M'] for x in row]
        # With some middlewares a client also hears the others' answers before it passes over them.
        qos = QoSProfile(depth=1000)
        self.kinds = [
            (node.create_client(GetMassMatrix, '/dynamics_server/get_mass_matrix', qos_profile=qos),
             GetMassMatrix.Request, 'mass_matrices', mass_matrix),
            (node.create_client(GetGravity, '/dynamics_server/get_gravity', qos_profile=qos),
             GetGravity.Request, 'efforts', expected['gravity']),
        ]
        for client, *_ in self.kinds:
            if not client.wait_for_service(timeout_sec=60.0):
                sys.exit(f'{client.srv_name} is not there')

    def ask(self):
        client, request, field, expected = self.kinds[self.calls % len(self.kinds)]
        future = client.call_async(request(positions=self.positions))
        future.add_done_callback(
            lambda answered: self.check(answered.result(), field, expected))

    def check(self, answer, field, expected):
        values = getattr(answer, field)
        self.right += answer.success and len(values) == len(expected) and all(
            abs(a - b) <= 1e-9 * max(1.0, abs(b)) for a, b in zip(values, expected))
        self.calls -= 1
        if self.calls:
            self.ask()


def main():
    count, calls = int(sys.argv[1]), int(sys.argv[2])
    with open(sys.argv[3], encoding='utf-8') as file:
        expected = json.load(file)
    rclpy.init()
    node = Node('flood_clients')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    clients = [Client(node, calls, expected[k]) for k in range(count)]
    for client in clients:
        client.ask()
    while any(client.calls for client in clients):
        executor.spin_once(timeout_sec=10.0)
    print(sum(client.right for client in clients))


main()
