/* The mask says how much of the result each pixel gets. It is painted on the stage, or read from a file,
 * and sent as a PNG. A mask is {width, height, grey}, with a byte for each of its pixels, from black (kept) to
 * white (filtered); it covers the image, and does not change once it is the state's. Without one all of
 * the image is filtered. */
import { Problem } from './convolved.js';
import { announce, find, h } from './dom.js';
import { open } from './image.js';

const PIXELS_MAX = 2 ** 22; // enough for the hand, and never more than the service takes
const FORMER_MAX = 12; // masks that can be had back
const SIZE_MIN = 2, SIZE_MAX = 300; // diameters of the brush, in CSS pixels

function sizeFor({ width, height }) {
  const scale = Math.min(1, Math.sqrt(PIXELS_MAX / (width * height)));
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
}

const makeMask = ({ width, height }, value) => ({ width, height, grey: new Uint8ClampedArray(width * height).fill(value) });

/* Returns the changes of a state that gets a mask, or none. The parameter of masks and regions goes with
 * the last of them. */
export function withMask({ mask, former, common, regions }, next) {
  const { invert, ...rest } = common;
  return { mask: next, former: mask === next ? former : [...former, mask].slice(-FORMER_MAX), stroke: null,
    ...(next || regions.length ? {} : { common: rest }) };
}

/* The part of the image that is filtered: a mask that is sent covers just this. */
const partOf = ({ image, roi }) => roi ?? { x: 0, y: 0, width: image.width, height: image.height };

/* Painting ------------------------------------------------------------------------------------ */

/* Paints from a to b, all in pixels of the mask, and returns the box that may have changed. Overlaps add
 * nothing. */
function paintLine({ width, height, grey }, a, b, radius, softness, erase) {
  const dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy || 1, edge = Math.max(1, radius * softness);
  const from = (p, q) => Math.max(0, Math.floor(Math.min(p, q) - radius - 1)), to = (p, q, most) => Math.min(most, Math.ceil(Math.max(p, q) + radius + 1));
  const x0 = from(a.x, b.x), y0 = from(a.y, b.y), x1 = to(a.x, b.x, width), y1 = to(a.y, b.y, height);

  for (let y = y0; y < y1; y++)
    for (let x = x0; x < x1; x++) {
      const px = x + 0.5 - a.x, py = y + 0.5 - a.y, along = Math.min(1, Math.max(0, (px * dx + py * dy) / square));
      const distance = Math.sqrt((px - along * dx) ** 2 + (py - along * dy) ** 2), at = y * width + x;
      const value = 255 * Math.min(1, Math.max(0, (radius + 0.5 - distance) / edge));
      grey[at] = erase ? Math.min(grey[at], 255 - value) : Math.max(grey[at], value);
    }
  return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
}

/* The mask that was drawn last, as a picture. */
let overlay = null, shown = null;

function tint(mask, { x, y, width, height }) {
  if (width <= 0 || height <= 0)
    return;
  const pixels = new ImageData(width, height), context = overlay.getContext('2d');
  for (let row = 0, at = 3; row < height; row++)
    for (let from = (y + row) * mask.width + x, end = from + width; from < end; from++, at += 4)
      pixels.data[at] = mask.grey[from];
  context.putImageData(pixels, x, y);
  context.globalCompositeOperation = 'source-atop'; // the colour, with the alpha that is there
  context.fillStyle = '#ff6e32';
  context.fillRect(x, y, width, height);
}

/* Draws the mask and the brush, while the tool is the brush, and not over the image before. */
export function drawMask(context, { tool, image, mask, stroke, brush }, view) {
  const now = stroke ?? mask;

  if (tool !== 'paint' || view.held)
    return;
  if (now) {
    if (now !== shown) {
      overlay = new OffscreenCanvas(now.width, now.height);
      tint(shown = now, { x: 0, y: 0, ...now });
    }
    context.globalAlpha = 0.5;
    context.drawImage(overlay, view.x, view.y, image.width * view.scale, image.height * view.scale);
    context.globalAlpha = 1;
  }
  for (const [width, colour] of view.pointer ? [[3, 'rgb(0 0 0 / 55%)'], [1.5, '#ffffff']] : []) {
    context.beginPath();
    context.arc(view.pointer.x, view.pointer.y, brush.size / 2, 0, 7);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }
}

/* Begins a stroke at a point of the image. Without a mask, a brush begins with black and an eraser with
 * white. It is the state's mask once it has ended; with a second finger it never was. */
export function paintTool(store, start, scale) {
  const { image, mask, brush } = store.state, size = sizeFor(image);
  const stroke = mask ? { ...mask, grey: mask.grey.slice() } : makeMask(size, brush.erase ? 255 : 0);
  const across = size.width / image.width, down = size.height / image.height, place = ({ x, y }) => ({ x: x * across, y: y * down });
  let last = start;

  function move(to) {
    const box = paintLine(stroke, place(last), place(to), brush.size / 2 / scale * across, brush.softness / 100, brush.erase);
    last = to;
    if (shown === stroke)
      tint(stroke, box);
  }

  move(start);
  store.set({ stroke });
  return { move, end: () => store.state.image === image && store.set(withMask(store.state, stroke)), drop: () => store.set({ stroke: null }) };
}

export function resizeBrush(store, factor) {
  const { brush } = store.state, size = Math.min(SIZE_MAX, Math.max(SIZE_MIN, Math.round(brush.size * factor)));
  store.set({ brush: { ...brush, size } });
  announce(`Brush of ${size} pixels`);
}

/* Files --------------------------------------------------------------------------------------- */

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++)
    n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function pngChunk(type, data) {
  const bytes = new Uint8Array(12 + data.length), view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, ~bytes.subarray(4, 8 + data.length).reduce((crc, byte) => CRC[(crc ^ byte) & 255] ^ (crc >>> 8), -1));
  return bytes;
}

/* Returns the mask as a file, for the part that the state filters: in grey, as a canvas would add alpha,
 * which the service refuses, and no larger than that part. */
export async function maskFile({ mask, image, roi }) {
  const part = partOf({ image, roi }), fit = (side) => Math.max(1, Math.min(mask[side], part[side], Math.ceil(part[side] * mask[side] / image[side])));
  const width = fit('width'), height = fit('height'), rows = new Uint8Array((1 + width) * height); // each begins with its filter, none
  const from = (i, start, side, count) => Math.floor((part[start] + (i + 0.5) * part[side] / count) * mask[side] / image[side]);
  const columns = Array.from({ length: width }, (_, x) => from(x, 'x', 'width', width));

  for (let y = 0; y < height; y++) {
    const row = from(y, 'y', 'height', height) * mask.width;
    columns.forEach((x, i) => { rows[y * (1 + width) + 1 + i] = mask.grey[row + x]; });
  }
  const packed = await new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream('deflate'))).arrayBuffer();
  const head = new Uint8Array(13), view = new DataView(head.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  head[8] = 8; // bits; all else is 0: grey
  return new Blob([Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10), pngChunk('IHDR', head), pngChunk('IDAT', new Uint8Array(packed)), pngChunk('IEND', [])],
    { type: 'image/png' });
}

/* Returns the mask of a picture, which is stretched to the part that is filtered; all else is black. */
function maskOf(bitmap, state) {
  const size = sizeFor(state.image), mask = makeMask(size, 0), part = partOf(state);
  const across = size.width / state.image.width, down = size.height / state.image.height;
  const left = Math.round(part.x * across), top = Math.round(part.y * down);
  const width = Math.max(1, Math.round(part.width * across)), height = Math.max(1, Math.round(part.height * down));
  const context = new OffscreenCanvas(width, height).getContext('2d');

  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  for (let i = 0; i < width * height; i++) {
    if (data[4 * i + 3] < 255)
      throw new Problem({ title: 'The mask has alpha', detail: 'Expected grey or colours without alpha: black keeps the image, white filters it.', status: 422, parameter: 'mask' });
    mask.grey[(top + Math.floor(i / width)) * size.width + left + i % width] = 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2];
  }
  return mask;
}

let saved = null;
async function save(store) {
  const file = await maskFile(store.state);
  URL.revokeObjectURL(saved); // the last one, which the browser has read by now
  saved = URL.createObjectURL(file);
  h('a', { href: saved, download: 'mask.png' }).click();
}

export function maskView(store) {
  const file = find('#mask-file'), bar = find('#brush'), size = find('#brush-size'), softness = find('#brush-softness'), erase = find('#erase');
  const put = (mask) => store.set(withMask(store.state, mask));
  const undo = () => {
    const { former } = store.state;
    if (former.length)
      store.set({ ...withMask(store.state, former.at(-1)), former: former.slice(0, -1) });
  };
  const buttons = [['#mask-load', () => file.click(), (s) => s.image], ['#mask-save', () => save(store), (s) => s.mask],
    ['#mask-clear', () => put(null), (s) => s.mask], ['#undo', undo, (s) => s.former.length]].map(([at, act, may]) => [find(at), act, may]);
  const setBrush = (change) => store.set({ brush: { ...store.state.brush, ...change } });

  for (const [button, act] of buttons)
    button.addEventListener('click', act);
  size.addEventListener('input', () => setBrush({ size: Number(size.value) }));
  softness.addEventListener('input', () => setBrush({ softness: Number(softness.value) }));
  erase.addEventListener('click', () => setBrush({ erase: !store.state.brush.erase }));
  file.addEventListener('change', () => {
    if (file.files[0])
      open(store, file.files[0].name, file.files[0], (bitmap, _, state) => {
        const patch = withMask(state, maskOf(bitmap, state));
        announce('Mask loaded');
        return patch;
      });
    file.value = '';
  });
  addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'z' && store.state.former.length && !event.target.closest?.('input, select')) {
      event.preventDefault();
      undo();
    }
  });
  store.watch((s) => [s.image, s.mask, s.former], (s) => buttons.forEach(([button, , may]) => { button.disabled = !may(s); }));
  store.watch((s) => [s.tool, s.brush], ({ tool, brush }) => {
    bar.hidden = tool !== 'paint';
    size.value = brush.size;
    softness.value = brush.softness;
    erase.setAttribute('aria-pressed', String(brush.erase));
  });
}
