"""Settings for engines that run on this machine alone."""

import os
import shutil
import sys

import pytest

SPARK_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def spark_settings():
    """Every Spark session of the tests listens to 127.0.0.1 only."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'priory[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, and there is no java")
    options = " ".join(f"--conf {name}={value}" for name, value in SPARK_SETTINGS.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        yield


@pytest.fixture(scope="session")
def cluster():
    """Two processes on this machine that nobody else can reach."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'priory[dask]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs="ERROR"
    ) as made:
        yield made
