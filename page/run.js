/* Sends the request of the state whenever that changes. Its outcome belongs to it: once the state
 * asks for anything else, no view can still get the former one. */
import { service } from './api.js';
import { requestOf } from './chain.js';
import { announce } from './dom.js';
import { decode } from './image.js';

const PAUSE_MS = 80; // while a slider moves
const IDLE = { state: 'idle' }, BUSY = { state: 'busy' };

/* All inputs of a request. */
const inputsOf = (s) => [s.image, s.chain, s.common, s.regions, s.roi, s.tokens, s.again];

/* Returns the outcome of the state's request: {state: 'idle'}, 'busy', 'done' with the result
 * {answer, bitmap, x, y, ms}, or 'failed' with the problem. A file that is being opened counts as a
 * request. */
export function outcomeOf(state) {
  const { image, opening, outcome } = state;
  if (opening || !image || !requestOf(state))
    return opening ?? IDLE;
  return outcome && inputsOf(state).every((input, i) => Object.is(input, outcome.inputs[i])) ? outcome : BUSY;
}

/* The error that the page shows, or undefined. */
export const problemOf = (state) => outcomeOf(state).problem ?? state.catalogueProblem ?? undefined;

/* Returns the place of the answer in the image. */
function placeOf({ common, roi, image }, bitmap) {
  const outer = roi && !common.target ? roi : { x: 0, y: 0, width: image.width, height: image.height };
  const crops = common.border === 'crop' && !common.target;
  return {
    x: outer.x + (crops ? (outer.width - bitmap.width) / 2 : 0),
    y: outer.y + (crops ? (outer.height - bitmap.height) / 2 : 0),
  };
}

async function fetchResult(state, target, signal) {
  const begun = performance.now();
  const answer = await service.post(target, state.image.blob, { signal });
  const ms = performance.now() - begun, bitmap = await decode(answer.blob, signal);
  return { answer, bitmap, ms, ...placeOf(state, bitmap) };
}

export function startRunner(store) {
  let timer = 0, last = null;

  async function run() {
    const state = store.state, inputs = inputsOf(state), { signal } = last = new AbortController();
    const settle = (outcome) => signal.aborted || store.set({ outcome: { inputs, ...outcome } });

    try {
      const result = await fetchResult(state, requestOf(state).target, signal);
      settle({ state: 'done', result });
      if (!signal.aborted)
        announce(`Filtered in ${Math.round(result.ms)} milliseconds`);
    } catch (problem) {
      settle({ state: 'failed', problem });
    }
  }

  store.watch(inputsOf, (state) => {
    clearTimeout(timer);
    last?.abort();
    // The error of a file that could not be opened is shown until the state asks for anything else.
    store.set({ outcome: null, ...(state.opening?.state === 'failed' ? { opening: null } : {}) });
    if (state.image && requestOf(state))
      timer = setTimeout(run, PAUSE_MS);
  });
}
