"""Settings for engines that run on this machine alone."""

import os
import sys

import pytest

SPARK_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def local_spark_settings():
    """Every Spark session of the tests listens to 127.0.0.1 only."""
    options = " ".join(f"--conf {name}={value}" for name, value in SPARK_SETTINGS.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        yield
