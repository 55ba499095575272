# SPDX-License-Identifier: Apache-2.0
"""Intervals of 95 % for a mean, which need no library."""
import math

# Two-sided 95 % quantiles of Student's t by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def mean_and_half_width(values):
    """Of independent values, two at least; above 15 degrees of freedom a little too wide."""
    middle = sum(values) / len(values)
    deviation = math.sqrt(sum((one - middle)**2 for one in values) / (len(values) - 1))
    return middle, STUDENT[min(len(values) - 1, len(STUDENT)) - 1] * deviation / math.sqrt(len(values))
