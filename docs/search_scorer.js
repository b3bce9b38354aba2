/* Tasks come first in a search, then names, then evidence; the changelog is last. */
const PLACES = [
  [/^(start|guide)\//, 20],
  [/^(evidence|developer)\//, -10],
  [/^api\/generated\/ssnmf_fast\.sklearn\./, -10],
  [/^changelog$/, -1000],
];
var Scorer = {
  score: ([page, , , , score]) =>
    PLACES.reduce((sum, [place, more]) => sum + (place.test(page) ? more : 0), score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
