// Scores of the search page. Decision records and raw tables are found too, but come after the pages that help.
const LAST = /^(decisions\/|benchmark\/report|speed\/results)/;

var Scorer = {
  score: (result) => {
    const [docname, , , , score] = result;
    return LAST.test(docname) ? score - 1000 : score;
  },
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
