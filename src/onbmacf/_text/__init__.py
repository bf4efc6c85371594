"""Results and frames as text: sentences, HTML, Markdown, CSV, LaTeX. Every value is data, never markup."""
