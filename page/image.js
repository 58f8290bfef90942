/* Images into the page: dropped, pasted, chosen, or one of the samples. */
import { service } from './api.js';
import { h, find } from './dom.js';
import { paintSample, sampleFile, samples } from './samples.js';

/* Returns a picture of a file. The service turns files that the browser cannot read (TIFF, HEIC, 16
 * bits) into PNG: a gain of 1 changes nothing. */
export async function decode(blob, signal) {
  try {
    return await createImageBitmap(blob);
  } catch {
    const answer = await service.apply(blob, { filter: 'linear', gain: 1 }, { format: 'png' }, { signal, bar: true });
    return createImageBitmap(answer.blob);
  }
}

/* Opens a file, or that of a promise: patchOf(bitmap, blob, state) is what then becomes of the state, unless
 * another is opened meanwhile. On failure the page says why, and all is as before. */
let latest = null;
export async function open(store, name, file, patchOf) {
  latest?.abort();
  const { signal } = latest = new AbortController();

  store.set({ opening: { state: 'busy', name } });
  try {
    const blob = await file, bitmap = await decode(blob, signal);
    if (!signal.aborted)
      store.set({ opening: null, ...patchOf(bitmap, blob, store.state) });
  } catch (problem) {
    if (!signal.aborted)
      store.set({ opening: { state: 'failed', problem } });
  }
}

/* Samples have one size, and share what is drawn on them. */
const imageOf = (sample) => (bitmap, blob, { image }) => ({
  image: { name: blob.name || 'image.png', blob, bitmap, width: bitmap.width, height: bitmap.height, sample },
  ...(image === null || (sample && image.sample) ? {} : { regions: [], roi: null, shape: null, mask: null, former: [] }),
});

const openFile = (store, file) => open(store, file.name || 'pasted image', file, imageOf(null));

export async function openSample(store, name) {
  const sample = samples.find((one) => one.name === name);
  if (sample)
    await open(store, sample.title, sampleFile(sample), imageOf(sample.name));
}

function firstImage(transfer) {
  return [...transfer.files][0] || null;
}

function listen(store) {
  const zone = document.body;
  let depth = 0; // dragenter and dragleave are sent for every element below the pointer

  const show = (on) => zone.classList.toggle('dropping', on);
  addEventListener('dragenter', (event) => {
    if (event.dataTransfer.types.includes('Files'))
      show(++depth > 0);
  });
  addEventListener('dragleave', (event) => {
    if (event.dataTransfer.types.includes('Files'))
      show(--depth > 0);
  });
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    show((depth = 0) > 0);
    const file = firstImage(event.dataTransfer);
    if (file)
      openFile(store, file);
  });
  addEventListener('paste', (event) => {
    const file = firstImage(event.clipboardData);
    if (file)
      openFile(store, file);
  });
}

export function imageView(store) {
  const input = find('#file');
  const buttons = samples.map((sample) => {
    const canvas = h('canvas', { width: 108, height: 72, 'aria-hidden': 'true' });
    paintSample(sample, canvas);
    return h('button', { type: 'button', class: 'sample', title: sample.title, 'data-sample': sample.name,
      onclick: () => openSample(store, sample.name) }, canvas, h('span', {}, sample.title));
  });

  listen(store);
  input.addEventListener('change', () => {
    if (input.files[0])
      openFile(store, input.files[0]);
    input.value = '';
  });
  find('#open').addEventListener('click', () => input.click());
  find('#choose').addEventListener('click', () => input.click());
  find('#samples').append(...buttons);
  store.watch((s) => [s.image, s.opening], ({ image, opening }) => {
    find('#empty').hidden = Boolean(image);
    document.body.classList.toggle('has-image', Boolean(image));
    for (const button of buttons)
      button.setAttribute('aria-pressed', String(image?.sample === button.dataset.sample));
    find('#name').textContent = opening?.name ? `Opening ${opening.name}…`
      : image ? `${image.name} · ${image.width} × ${image.height}` : '';
  });
}
