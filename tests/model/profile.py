"""How long hypothesis searches.

RDQ_TEST_MODEL_EXAMPLES says how many examples each test tries, new ones in each run. Without it a
run is short, and always the same.
"""

import os

from hypothesis import HealthCheck, settings

ASKED = int(os.environ.get("RDQ_TEST_MODEL_EXAMPLES", "0"))


def run(examples: int, steps: int = 50) -> settings:
    """Return the settings of a test that tries so many examples where nobody asks for more."""
    return settings(
        max_examples=ASKED or examples,
        derandomize=not ASKED,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        stateful_step_count=steps,
    )
