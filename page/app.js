/* The page to try filters on: one state, and views of it. */
import { service } from './api.js';
import { borderView } from './border.js';
import { cardsView, chainView, parametersView } from './cards.js';
import { fragmentOf, parseFragment } from './chain.js';
import { codeView } from './code.js';
import { compareView, problemView } from './compare.js';
import { imageView, openSample } from './image.js';
import { maskView } from './mask.js';
import { outputView } from './output.js';
import { regionsView } from './regions.js';
import { startRunner } from './run.js';
import { createStore } from './store.js';
import { timingView } from './timing.js';
import { tokenView } from './token.js';

const { sample: firstSample, ...given } = parseFragment(location.hash);

const store = createStore({
  ...given, // chain, common, regions, roi
  selected: given.chain[0]?.id ?? null,
  image: null, // {name, blob, bitmap, width, height, sample}
  // outcome for a file that becomes the image: {state: 'busy', name} or {state: 'failed', problem}
  opening: null,
  shape: null, // the region that is chosen; -1: the region of interest
  draft: null, // corners of a polygon that is not closed yet
  tool: 'compare', // or rectangle, ellipse, polygon, roi, paint: the effect of a drag on the stage
  mask: null, former: [], // see mask.js; masks before it, which can be had back
  stroke: null, // the mask with the stroke that is being painted
  brush: { size: 48, softness: 50, erase: false }, // its diameter in CSS pixels, and percent
  catalogue: null, // {filters: Map by name, presets, common}
  language: 'curl',
  whole: null, // the work that is asked for whole, though there is a preview
  outcome: null, // outcome of the latest request that has ended; views ask outcomeOf()
  catalogueProblem: null,
  tokens: 0, again: 0, revision: 0, // count new tokens, retries, and states that came from an address
});

async function loadCatalogue() {
  try {
    const { filters, ...rest } = await service.get('v1/filters');
    store.set({ catalogue: { filters: new Map(filters.map((filter) => [filter.name, filter])), ...rest }, catalogueProblem: null });
  } catch (problem) {
    store.set({ catalogueProblem: problem });
  }
}

/* The address always describes the page. */
function keepAddress() {
  let own = location.hash;

  store.watch((s) => [s.chain, s.common, s.regions, s.roi, s.image], (state) => {
    const fragment = state.opening?.state === 'busy' ? null : fragmentOf(state);
    if (fragment === null || `#${fragment}` === own || (!fragment && !own))
      return;
    history.replaceState(null, '', fragment ? `#${fragment}` : location.pathname + location.search);
    own = location.hash;
  });
  addEventListener('hashchange', () => {
    if (location.hash === own)
      return;
    own = location.hash;
    const { sample, ...state } = parseFragment(location.hash);
    store.set({ ...state, selected: state.chain[0]?.id ?? null, shape: null, revision: store.state.revision + 1 });
    if (sample && sample !== store.state.image?.sample)
      openSample(store, sample);
  });
}

imageView(store);
compareView(store);
problemView(store);
regionsView(store);
maskView(store);
cardsView(store);
chainView(store);
parametersView(store);
borderView(store);
outputView(store);
codeView(store);
timingView(store);
tokenView();
startRunner(store);
if (firstSample || given.chain.length)
  await openSample(store, firstSample || 'spheres');
keepAddress();
addEventListener('tokenchange', () => {
  store.set({ tokens: store.state.tokens + 1 });
  loadCatalogue();
});
store.watch((s) => [s.again], loadCatalogue);
