"""Threefry2x32, 20 rounds, in plain integers (Salmon et al., SC 2011), and addresses of draws."""

from __future__ import annotations

MASK = 0xFFFFFFFF
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA

WORLD, POLICY = 1, 2
TIE, THETA_REWARD, THETA_COST, TRIAL, EXPLORE = range(5)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """The two output words."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    x0, x1 = (counter[0] + keys[0]) & MASK, (counter[1] + keys[1]) & MASK
    for r in range(20):
        x0 = (x0 + x1) & MASK
        turn = ROTATIONS[r % 8]
        x1 = (((x1 << turn) | (x1 >> (32 - turn))) & MASK) ^ x0
        if r % 4 == 3:
            s = r // 4 + 1
            x0, x1 = (x0 + keys[s % 3]) & MASK, (x1 + keys[(s + 1) % 3] + s) & MASK
    return x0, x1


Words = tuple[int, int]


def policy_words(
    root: tuple[int, int], instance: int, replicate: int, round: int, role: int, arm: int = 0
) -> tuple[int, int]:
    """A policy's two words for (round, role, arm) in lane (instance, replicate)."""
    lane = threefry(root, (instance, replicate))
    return threefry(threefry(lane, (0, POLICY)), (round, role << 24 | arm))


def world_words(root: Words, instance: int, replicate: int, arm: int, n: int) -> Words:
    """The two words of an arm's outcome after n earlier pulls."""
    lane = threefry(root, (instance, replicate))
    return threefry(threefry(lane, (0, WORLD)), (n, arm))
