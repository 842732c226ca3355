#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every parameter of the ROS layer is on its user page, with the default that it has."""

import os
import pathlib
import re
import unittest

import yaml

ROS = pathlib.Path(os.environ['RD_SOURCE_DIR']) / 'dynamics_ros'


def parameters(tree, prefix=''):
    """Names and defaults; `__map_joints` becomes `<joint>`."""
    for key, value in tree.items():
        name = prefix + re.sub(r'^__map_(\w+?)s$', r'<\1>', key)
        if 'type' in value and isinstance(value['type'], str):
            yield name, value.get('default_value')
        else:
            yield from parameters(value, name + '.')


def rows(page):
    """The first two columns of every table row that begins with a parameter's name."""
    return dict(re.findall(r'^\| `([^`]+)` \| ([^|]*) \|', page, re.MULTILINE))


class Pages(unittest.TestCase):
    def test_name_every_parameter_and_its_default(self):
        sources = sorted((ROS / 'src').glob('*_parameters.yaml'))
        self.assertTrue(sources)
        for source in sources:
            name = source.name.removesuffix('_parameters.yaml')
            table = rows((ROS / 'doc' / f'{name}.md').read_text())
            (tree,) = yaml.safe_load(source.read_text()).values()
            for parameter, default in parameters(tree):
                with self.subTest(page=name, parameter=parameter):
                    self.assertIn(parameter, table)
                    self.check_default(table[parameter], default)

    def check_default(self, told, default):
        if isinstance(default, bool):
            self.assertIn(str(default).lower(), told)
        elif isinstance(default, str) and default:
            self.assertIn(default, told)
        elif isinstance(default, (int, float)):
            number = re.match(r'−?[\d.]+|infinity|NaN', told)
            self.assertIsNotNone(number, told)
            value = number[0].replace('−', '-').replace('infinity', 'inf')
            if default == default:
                self.assertEqual(float(value), default)
            else:
                self.assertEqual(value, 'NaN')


if __name__ == '__main__':
    unittest.main()
