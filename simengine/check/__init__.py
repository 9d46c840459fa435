"""`check_model`: does this engine compute what MuJoCo computes, for a given model, backend and precision?"""

from __future__ import annotations

from simengine.check.check import check_model
from simengine.check.report import BudgetResult, CheckReport, FieldResult

__all__ = ["BudgetResult", "CheckReport", "FieldResult", "check_model"]
