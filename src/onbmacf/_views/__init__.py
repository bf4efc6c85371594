"""What people see of one row, as plain values: fields, plans, what was asked. Shared by the pages and the widget."""
