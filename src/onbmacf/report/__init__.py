"""One document about a model: the frames and plots of an audit as HTML or Markdown (extra `report`).

    explainer, answers  ->  audit_report  ->  Report (one dict)  ->  templates  ->  one self-contained file

The HTML file needs no network and runs no scripts; every value of the table is data and is shown as text.

>>> from onbmacf.report import About, audit_report
"""

from onbmacf.report.content import About, audit_report
from onbmacf.report.render import Report

__all__ = ["About", "Report", "audit_report"]
