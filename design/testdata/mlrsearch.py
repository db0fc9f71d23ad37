#!/usr/bin/env python3
"""Prints mlrsearch.csv: how MLRsearch of PyPI searches simulated devices. pip install MLRsearch==1.2.1

The devices are those of loads_test.go: change both or none.
"""
import math

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

MAX_LOAD = 1e7
MASK = 2**64 - 1


def draw(seed, trial, n):
    """A number in [0, 1), by splitmix64."""
    x = (seed * 0x9E3779B97F4A7C15 + (trial * 16 + n + 1) * 0xD1B54A32D192ED03) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return ((x ^ (x >> 31)) >> 11) / 2**53


def poisson(mean, u):
    if mean > 30:
        return math.floor(mean)
    term = total = math.exp(-mean)
    k = 0
    while u >= total and k < 200:
        k += 1
        term *= mean / k
        total += term
    return k


class Device(AbstractMeasurer):
    def __init__(self, kind, seed, noise):
        self.kind, self.noise = kind, seed * 1000003 + noise
        self.limit = 2e5 * math.exp(draw(seed, 0, 0) * math.log(16))
        self.phase = draw(self.noise, 0, 1)
        self.trials, self.seconds = 0, 0.0

    def measure(self, intended_duration, intended_load):
        load, seconds = intended_load, intended_duration
        self.trials += 1
        middle = self.seconds + seconds / 2
        self.seconds += seconds
        sent, limit, lost = math.floor(load * seconds), self.limit, 0
        u, v = draw(self.noise, self.trials, 0), draw(self.noise, self.trials, 1)
        if self.kind == "noisy" and u < 0.2:
            lost = 1 + math.floor(sent * 1e-4 * v * v)
        elif self.kind in ("soft", "rare"):  # tenfold the loss for each 1.7 % of load
            ratio = 1e-6 * math.pow(10, min((load / limit - 1) * 60, 6))
            mean = sent * ratio / (1 + ratio * 50)
            lost = math.floor(mean) if self.kind == "soft" else poisson(mean, u)
            limit *= 1.1
        elif self.kind == "inverted" and 0.95 * limit <= load <= 0.97 * limit:
            lost = 1 + math.floor(sent * 1e-3)
        elif self.kind == "drifting":
            limit *= 1 + 0.01 * math.sin(2 * math.pi * (middle / 30 + self.phase))
        elif self.kind == "beyond":
            limit = 2 * MAX_LOAD
        elif self.kind == "stalls":  # of a core, three a second, while a ring of 256 packets fills
            limit = 1e6 * math.exp(draw(self.noise // 1000003, 0, 0) * math.log(2))
            for i in range(min(poisson(3 * seconds, u), 14)):
                stall = -0.25e-3 * math.log(1 - draw(self.noise, self.trials, 2 + i))
                lost += max(0, math.floor(stall * load - 256))
        lost = min(sent, max(lost, sent - math.floor(limit * seconds)))
        return MeasurementResult(intended_duration=seconds, intended_load=load, offered_count=sent, loss_count=lost)


NDR = dict(loss_ratio=0.0, exceed_ratio=0.5, relative_width=0.005, initial_trial_duration=1.0,
           final_trial_duration=1.0, duration_sum=21.0, preceding_targets=2, fail_fast=False)
SEARCHES = {
    "ndr": [NDR],
    "ndr+pdr": [NDR, dict(NDR, loss_ratio=0.005)],
    "rfc2544": [dict(NDR, exceed_ratio=0.0, final_trial_duration=60.0, duration_sum=60.0)],
}


def search(name, kind, seed, noise, min_load):
    """Returns the seconds of the trials and the relevant lower bound of the first and the last goal."""
    goals = [SearchGoal(**g) for g in SEARCHES[name]]
    config = Config(goals=goals, min_load=min_load, max_load=MAX_LOAD, warmup_duration=0.0)
    device = Device(kind, seed, noise)
    results = MultipleLossRatioSearch(config=config).search(device, debug=lambda _: None)
    lower = [results[g].relevant_lower_bound for g in goals]
    return device.seconds, float(lower[0] or 0), float(lower[-1] or 0)


print("search,device,seed,seconds,first,last,again first,again last")
for name in SEARCHES:
    for kind in ["sharp", "soft", "rare", "noisy", "inverted", "drifting", "beyond", "stalls"]:
        if name == "rfc2544" and kind != "sharp":
            continue
        for seed in range(1, 21):
            seconds, first, last = search(name, kind, seed, 0, 9001.0)
            # The same device with other noise, and other loads on the way.
            _, again_first, again_last = search(name, kind, seed, 1, 9021.0)
            print(f"{name},{kind},{seed},{seconds:g},{first:.0f},{last:.0f},{again_first:.0f},{again_last:.0f}")
