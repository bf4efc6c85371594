"""One document about a model or about one decision, as HTML or Markdown (extra `report`).

    explainer, answers  ->  audit_report  ->  Report (one dict)  ->  templates  ->  one self-contained file
    explainer, one row  ->  notice        ->  Notice (one dict)  ->  templates  ->  one page for one person

The HTML file needs no network and runs no scripts; every value of the table is data and is shown as text.

>>> from onbmacf.report import About, audit_report, notice
"""

from onbmacf.report.content import About, audit_report
from onbmacf.report.notice import Notice, notice
from onbmacf.report.render import Report

__all__ = ["About", "Notice", "Report", "audit_report", "notice"]
