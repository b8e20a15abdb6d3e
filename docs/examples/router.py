"""A router between three back ends of different price, delay and quality: threads, a kill half-way,
three days.

    python docs/examples/router.py [--out DIR] [--days N]

Needs no network: the back ends are made up, and a day lasts some seconds. A child process serves
with eight threads and is killed (kill -9) after half of the time; a second one goes on with its
file. Then the file alone draws the picture: money and quality, hour by hour.
"""

import argparse
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax

import jaxbandits as jb

BACK_ENDS = {  # dollars on average, seconds of a real day, quality
    "small": (0.0002, 2.0, 0.70),
    "middle": (0.0020, 15.0, 0.85),
    "large": (0.0150, 60.0, 0.95),
}
BOUNDS = {name: 4 * price for name, (price, _, _) in BACK_ENDS.items()}
DAILY, DAY, HOUR = 3.0, 86400.0, 3600.0
FORECAST = [
    10, 6, 4, 4, 6, 12, 25, 40, 55, 60, 60, 55,
    55, 60, 60, 55, 50, 50, 55, 60, 55, 45, 30, 18,
]  # fmt: skip
THREADS, SECONDS = 8, 6.0  # of our time that a day lasts


def call(name, rng, wait):
    """A back end: waits, and gives (quality, dollars)."""
    price, seconds, quality = BACK_ENDS[name]
    wait(rng.expovariate(1 / seconds))
    return min(1.0, max(0.0, rng.gauss(quality, 0.1))), min(
        BOUNDS[name], price * rng.gammavariate(2.0, 0.5)
    )


def serve(file, days):
    """Serve from where the file ends until so many days are over."""
    began = time.monotonic()
    at = last_time(file)

    def clock():
        return at + (time.monotonic() - began) * DAY / SECONDS

    agent = jb.live.Agent(
        jb.policies.Discounted.half_life(jb.policies.PricePacer(), 2000),
        arms=BOUNDS,
        reward_bound=1.0,
        budgets=[jb.live.Budget(DAILY, DAY, name="day")],
        key=jax.random.key(0),
        file=file,
        hold=0.99,
        clock=clock,
    )
    print("ready", flush=True)
    began = time.monotonic()
    requests = queue.Queue(maxsize=64)

    def worker(seed):
        rng = random.Random(seed)
        while requests.get() is not None:
            ticket = agent.choose()
            if ticket is not None:  # else: the day's money is gone, or the pacer saves it
                quality, dollars = call(
                    ticket.arm, rng, lambda seconds: time.sleep(seconds * SECONDS / DAY)
                )
                agent.learn(ticket, reward=quality, cost=dollars)

    threads = [threading.Thread(target=worker, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    rng = random.Random(1)
    while clock() < days * DAY:
        hour = int(clock() % DAY // HOUR)
        time.sleep(rng.expovariate(FORECAST[hour] / HOUR) * SECONDS / DAY)
        requests.put(1)
        agent.expire(older_than=900.0)
    for _ in threads:
        requests.put(None)
    for thread in threads:
        thread.join()
    agent.close()


def last_time(file):
    """The last time that the file knows."""
    times = [event["t"] for event in read(file)]
    return times[-1] if times else 0.0


def read(file):
    """All events."""
    return jb.live.events(file) if file.exists() else ()


def picture(file, out, days, killed):
    """Money and quality by hour, from the file alone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    decided, money, quality, served = {}, {}, {}, {}
    for event in read(file):
        if event["do"] == "choose":
            hour = int(event["t"] // HOUR)
            served.setdefault(event["arm"], {}).setdefault(hour, 0)
            served[event["arm"]][hour] += 1
            decided[event["id"]] = hour
        elif event["do"] == "learn":
            hour = decided[event["id"]]
            money[hour] = money.get(hour, 0.0) + event["cost"]
            quality.setdefault(hour, []).append(event["reward"])
    hours = range(24 * days)
    spent, total = [], 0.0
    for hour in hours:
        total = money.get(hour, 0.0) + (0.0 if hour % 24 == 0 else total)
        spent.append(total)
    figure, axes = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
    axes[0].plot(hours, spent, color="#0072B2", drawstyle="steps-post")
    axes[0].axhline(DAILY, color="black", linestyle=":", label="granted a day")
    axes[0].set(ylabel="spent today, $", title="Three back ends, one budget a day, killed once")
    below = [0] * len(hours)
    for name, colour in zip(
        [*BACK_ENDS, None], ("#009E73", "#E69F00", "#D55E00", "#999999"), strict=True
    ):
        counts = [served.get(name, {}).get(hour, 0) for hour in hours]
        axes[1].bar(
            hours,
            counts,
            bottom=below,
            width=1.0,
            align="edge",
            color=colour,
            label=name or "turned away",
        )
        below = [a + b for a, b in zip(below, counts, strict=True)]
    axes[1].set(ylabel="requests an hour", ylim=(0, 1.3 * max(below)))
    known = [hour for hour in hours if quality.get(hour)]
    axes[2].plot(known, [sum(quality[h]) / len(quality[h]) for h in known], color="#CC79A7")
    axes[2].set(ylabel="mean quality", xlabel="hour", ylim=(0.5, 1), xlim=(0, 24 * days))
    for axis in axes:
        axis.axvline(killed / HOUR, color="black", linewidth=1, linestyle="--", label="kill -9")
        axis.set_xticks(range(0, 24 * days + 1, 12))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, loc="upper left")
    axes[1].legend(frameon=False, loc="upper left", ncols=5, fontsize=8)
    figure.savefig(out / "router.png", dpi=120)
    return max(spent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("jaxbandits-out"))
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.days)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "router.db"
    for part in given.out.glob("router.db*"):
        part.unlink()
    command = [sys.executable, __file__, "--days", str(given.days), "--serve", str(file)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    time.sleep(given.days * SECONDS / 2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    killed = last_time(file)
    print(
        f"killed after {killed / HOUR:.1f} hours, {sum(1 for _ in read(file)):,} events in the file"
    )
    subprocess.run(command, check=True)
    most = picture(file, given.out, given.days, killed)
    events = sum(1 for _ in read(file))
    print(
        f"{events:,} events; most spent on a day: {most:.4f} $ of {DAILY} $; {given.out / 'router.png'}"
    )


if __name__ == "__main__":
    main()
