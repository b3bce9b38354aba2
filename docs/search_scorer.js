/* Tasks come first in a search, then names, then evidence; the changelog is last. Words of the
   question in the title of a page count more than in the title of a section. */
const QUESTION = new URLSearchParams(location.search).get("q") || "";
const ASKED = QUESTION.toLowerCase().match(/\w+/g) || [];
const PLACES = [
  [/^(start|guide)\/|^evidence\/speed$/, 20],
  [/^(evidence|developer)\//, -10],
  [/^api\/generated\/ssnmf_fast\.sklearn\./, -10],
  [/^changelog$/, -1000],
];
var Scorer = {
  score: ([page, title, , , score]) =>
    PLACES.reduce((sum, [place, more]) => sum + (place.test(page) ? more : 0), score) +
    (10 * ASKED.filter((word) => title.toLowerCase().includes(word)).length) / (ASKED.length || 1),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
