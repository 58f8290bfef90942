/* Sends the request of the state whenever that changes. Its outcome belongs to it: once the state
 * asks for anything else, no view can still get the former one. A large image is tried as a preview,
 * until the state wants the whole of just this. */
import { service } from './api.js';
import { requestOf } from './chain.js';
import { bodyOf } from './convolved.js';
import { announce } from './dom.js';
import { decode } from './image.js';
import { maskFile } from './mask.js';
import { forgetSmall, previewOf, previewPercent, smallImage } from './preview.js';

const PAUSE_MS = 80; // while a slider moves
const IDLE = { state: 'idle' }, BUSY = { state: 'busy' };

export const same = (some, others) => some.every((one, i) => Object.is(one, others?.[i]));

/* The work that a state asks for. */
export const workOf = (s) => [s.image, s.chain, s.common, s.regions, s.roi, s.mask];

/* Returns the scale at which it is done, in percent: below 100 it is a preview. A preset's chain is the
 * service's, and perhaps all that it does. */
export const percentOf = (s) => (same(workOf(s), s.whole) || requestOf(s)?.preset ? 100 : previewPercent(s));

/* All inputs of a request. */
const inputsOf = (s) => [...workOf(s), requestOf(s)?.target, percentOf(s), s.tokens, s.again];

/* Returns the outcome of the state's request: {state: 'idle'}, 'busy', 'done' with the result
 * {answer, bitmap, ms, percent, x, y, width, height}, its place in the image, or 'failed' with the
 * problem. A file that is being opened counts as a request. */
export function outcomeOf(state) {
  const { image, opening, outcome } = state;
  if (opening || !image || !requestOf(state))
    return opening ?? IDLE;
  return outcome && same(inputsOf(state), outcome.inputs) ? outcome : BUSY;
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

async function fetchResult(state, signal) {
  const { image } = state, percent = percentOf(state);
  const asked = percent < 100 ? previewOf(state, await smallImage(image, percent)) : state;
  const body = bodyOf(asked.image.blob, asked.mask && await maskFile(asked));
  const begun = performance.now(), answer = await service.post(requestOf(asked).target, body, { signal, bar: true });
  const ms = performance.now() - begun, bitmap = await decode(answer.blob, signal), { x, y } = placeOf(asked, bitmap);
  const across = (length) => length * image.width / asked.image.width, down = (length) => length * image.height / asked.image.height;
  return { answer, bitmap, ms, percent, x: across(x), y: down(y), width: across(bitmap.width), height: down(bitmap.height) };
}

export function startRunner(store) {
  let timer = 0, last = null;

  async function run() {
    const state = store.state, inputs = inputsOf(state), { signal } = last = new AbortController();
    const settle = (outcome) => signal.aborted || store.set({ outcome: { inputs, ...outcome } });

    try {
      const result = await fetchResult(state, signal);
      settle({ state: 'done', result });
      if (!signal.aborted)
        announce(`${result.percent < 100 ? 'Preview filtered' : 'Filtered'} in ${Math.round(result.ms)} milliseconds`);
    } catch (problem) {
      settle({ state: 'failed', problem });
    }
  }

  store.watch((s) => [s.image], forgetSmall);
  store.watch(inputsOf, (state) => {
    clearTimeout(timer);
    last?.abort();
    // The error of a file that could not be opened is shown until the state asks for anything else.
    store.set({ outcome: null, ...(state.opening?.state === 'failed' ? { opening: null } : {}) });
    if (state.image && requestOf(state))
      timer = setTimeout(run, PAUSE_MS);
  });
}
