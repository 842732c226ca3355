#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a running dynamics_server takes for mass matrices of many configurations, as a client
sees it.

    round_trip.py [JOINTS] [CONFIGURATIONS] [SERVER]      default: 7 1000 /dynamics_server

Prints the least and the median of the time from the call to the answer, for one configuration and for
so many. How much of it is computing: `./dev bench` (batch, mass matrix).
"""

import statistics
import sys
import time

import rclpy
from realtime_dynamics.srv import GetMassMatrix

CALLS = 200


def measure(node, client, joints, configurations):
    request = GetMassMatrix.Request()
    request.positions = [0.001 * (i % 1000) for i in range(joints * configurations)]
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future)
        times.append(1e3 * (time.perf_counter() - start))
        answer = future.result()
        assert answer.success, answer.message
        assert answer.configurations == configurations
    print(f'{configurations:>6} configurations of {joints} joints: '
          f'{min(times):.2f} ms, median {statistics.median(times):.2f} ms')


def main():
    joints = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    configurations = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    server = sys.argv[3] if len(sys.argv) > 3 else '/dynamics_server'
    rclpy.init()
    node = rclpy.create_node('round_trip')
    client = node.create_client(GetMassMatrix, server + '/get_mass_matrix')
    if not client.wait_for_service(timeout_sec=10.0):
        sys.exit(f'{server}/get_mass_matrix does not answer')
    for k in (1, configurations):
        measure(node, client, joints, k)


if __name__ == '__main__':
    main()
