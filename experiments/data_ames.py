"""Make the table of random-forest configurations on Ames housing: reward and training seconds per
split.

    python -m experiments.data_ames [--data ../shared/data] [--out FILE.npz]

The RCUCB paper runs 672 configurations of R's ranger (§5.2). Here: 24 of them (trees 100, 200, 400;
variables tried per split 20 or 30; smallest node to split 3 or 9; bagging share 0.55 or 0.8) × 10
random 70:30 splits, with scikit-learn's RandomForestRegressor on one thread each, sized to run in
at most 10 minutes on two cores. Reward: 1 − RMSE on the test part / (largest − smallest price in
the whole data), clipped to [0, 1]; consumption: seconds that `fit` takes. Text columns become
ordinal codes, missing numbers medians. Times are this machine's. The table is written to FILE.npz
(default jaxbandits-out/ames_forests.npz), never committed.

Needs scikit-learn and pandas: pip install -e '.[data]'.
"""

from __future__ import annotations

import argparse
import itertools
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

GRID: dict[str, tuple[float, ...]] = {
    "trees": (100, 200, 400),
    "mtry": (20, 30),
    "node": (3, 9),
    "share": (0.55, 0.8),
}
SPLITS = 10
DEFAULT_OUT = Path("jaxbandits-out/ames_forests.npz")


def configurations() -> list[tuple[float, ...]]:
    """(trees, mtry, node, share) of every arm."""
    return list(itertools.product(*GRID.values()))


def ames_features(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(X, price) of ames_raw.csv."""
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

    table = pandas.read_csv(path)
    price = table.pop("SalePrice").to_numpy(np.float64)
    table = table.drop(columns=[c for c in ("Order", "PID") if c in table.columns])
    columns = []
    for name in table.columns:
        column = table[name]
        if not pandas.api.types.is_numeric_dtype(column):
            column = column.astype("category").cat.codes
        columns.append(column.fillna(column.median()).to_numpy(np.float64))
    return np.column_stack(columns), price


def run_split(job: tuple[str, int]) -> list[tuple[float, float]]:
    """(reward, seconds) of every configuration on one split."""
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-not-found,import-untyped,unused-ignore]

    x, y = ames_features(Path(job[0]))
    order = np.random.default_rng(job[1]).permutation(y.size)
    train, test = np.split(order, [int(0.7 * y.size)])
    spread = y.max() - y.min()
    rows = []
    for trees, mtry, node, share in configurations():
        sizes = {
            "n_estimators": int(trees),
            "max_features": int(mtry),
            "min_samples_split": int(node),
        }
        forest = RandomForestRegressor(**sizes, max_samples=share, n_jobs=1, random_state=job[1])
        start = time.perf_counter()
        forest.fit(x[train], y[train])
        seconds = time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((forest.predict(x[test]) - y[test]) ** 2)))
        rows.append((min(max(1 - rmse / spread, 0.0), 1.0), seconds))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Make the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    options: Any = parser.parse_args(arguments)
    source = options.data / "ames" / "ames_raw.csv"
    if not source.exists():
        raise SystemExit(
            f"--data: {options.data} given; it must be a folder that holds ames/ames_raw.csv"
        )
    start = time.perf_counter()
    table = []
    with ProcessPoolExecutor(2) as pool:
        for split, rows in enumerate(
            pool.map(run_split, [(str(source), s) for s in range(SPLITS)])
        ):
            table.append(rows)
            print(f"split {split + 1} of {SPLITS}, {time.perf_counter() - start:.0f} s", flush=True)
    values = np.asarray(table)  # [split, configuration, 2]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        options.out,
        configurations=np.array(configurations()),
        reward=values[..., 0].T,
        seconds=values[..., 1].T,
    )
    print(f"wrote {options.out}: {values.shape[1]} configurations × {values.shape[0]} splits")


if __name__ == "__main__":
    main()
