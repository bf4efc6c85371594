// Scores of the search page. How-tos come first among pages that match equally well; decision records and raw tables are
// found too, but after all others.
const MORE = [
  [/^questions\//, 6],
  [/^(gallery\/|first-report|coming-from)/, 3],
  [/^(decisions\/|benchmark\/report|speed\/results)/, -1000],
];

var Scorer = {
  score: ([docname, , , , score]) =>
    MORE.reduce((sum, [pages, more]) => sum + (pages.test(docname) ? more : 0), score),
  // The other scores are Sphinx's own.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
