/* Sends the request of the state whenever that changes; the latest counts. */
import { request } from './api.js';
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

function headersOf(answer) {
  const get = (name) => answer.headers.get(name);
  return {
    timing: get('Server-Timing'), device: get('X-Device'), codec: get('X-Codec'), lost: get('X-Lost'),
    kind: (get('X-Image') || '').replaceAll('x', ' × '), samples: get('X-Verify-Samples'), mismatches: get('X-Verify-Mismatches'),
    largest: get('X-Verify-Max-Difference'),
  };
}

async function fetchResult(state, target, signal) {
  const begun = performance.now();
  const answer = await request(target, { method: 'POST', body: state.image.blob, signal });
  const blob = await answer.blob(), ms = performance.now() - begun, bitmap = await decode(blob, signal);
  return { blob, bitmap, ms, headers: headersOf(answer), ...placeOf(state, bitmap) };
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
