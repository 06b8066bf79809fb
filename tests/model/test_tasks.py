"""Any calls in any order: the database does what the model says."""

from typing import Any

import psycopg
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.model.operators import Operators
from tests.model.producers import Producers
from tests.model.profile import ASKED, run
from tests.model.workers import Workers


@pytest.mark.slow
@pytest.mark.timeout(600 + ASKED)  # hypothesis makes a failing sequence shorter for minutes
def test_any_calls_in_any_order_do_what_the_model_says(db: psycopg.Connection[Any]) -> None:
    class Tasks(Producers, Workers, Operators):
        connection = db

    run_state_machine_as_test(Tasks, settings=run(80, steps=60))
