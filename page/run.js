/* Sends the request of the state whenever that changes; the latest counts. */
import { service } from './api.js';
import { requestOf } from './chain.js';
import { announce } from './dom.js';
import { decode } from './image.js';

const PAUSE_MS = 80; // while a slider moves

/* Where the answer lies in the image. */
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
  let timer = 0, last = null, failure = null;

  async function run() {
    const state = store.state, what = state.image && requestOf(state);
    last?.abort();
    if (!what) {
      // What opening a file has come to stays to be read.
      store.set({ run: { state: 'idle' }, result: null, ...(state.problem === failure ? { problem: null } : {}) });
      return;
    }
    const mine = last = new AbortController();
    store.set({ run: { state: 'busy' } });
    try {
      const result = await fetchResult(state, what.target, mine.signal);
      if (mine.signal.aborted)
        return;
      store.set({ run: { state: 'done' }, result, problem: null });
      announce(`Filtered in ${Math.round(result.ms)} milliseconds`);
    } catch (problem) {
      if (mine.signal.aborted)
        return;
      failure = problem;
      store.set({ run: { state: 'failed' }, problem });
    }
  }

  store.watch((s) => [s.image, s.chain, s.common, s.regions, s.roi, s.tokens, s.again], () => {
    clearTimeout(timer);
    timer = setTimeout(run, PAUSE_MS);
  });
}
