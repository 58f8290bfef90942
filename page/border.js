/* Shows the outside of the image: a small picture of each border. */
import { parseChain } from './chain.js';
import { h, find } from './dom.js';

const INNER = 12, RIM = 5, ZOOM = 3;

/* The source of a pixel at i outside of 0 to n - 1; -1: none. */
const RULES = {
  replicate: (i, n) => Math.min(n - 1, Math.max(0, i)),
  reflect: (i, n) => {
    const at = ((i % (2 * n)) + 2 * n) % (2 * n);
    return at < n ? at : 2 * n - 1 - at;
  },
  reflect101: (i, n) => {
    const period = 2 * n - 2, at = ((i % period) + period) % period;
    return at < n ? at : period - at;
  },
  wrap: (i, n) => ((i % n) + n) % n,
  constant: (i, n) => (i < 0 || i >= n ? -1 : i),
  crop: (i, n) => (i < 0 || i >= n ? -2 : i),
};

const TEXTS = {
  replicate: 'the edge goes on', reflect: 'mirrored', reflect101: 'mirrored, edge once', wrap: 'from the other side',
  constant: 'one value', crop: 'a smaller result',
};

/* Returns the image as INNER x INNER pixels; without one, a slope. */
function tinyImage(image) {
  const canvas = new OffscreenCanvas(INNER, INNER), context = canvas.getContext('2d', { willReadFrequently: true });
  if (image) {
    context.imageSmoothingQuality = 'high';
    context.drawImage(image.bitmap, 0, 0, INNER, INNER);
  } else {
    for (let y = 0; y < INNER; y++)
      for (let x = 0; x < INNER; x++) {
        context.fillStyle = `hsl(${20 + x * 14} 60% ${30 + y * 4}%)`;
        context.fillRect(x, y, 1, 1);
      }
  }
  return context.getImageData(0, 0, INNER, INNER).data;
}

function paint(canvas, data, rule, constant) {
  const context = canvas.getContext('2d'), inner = INNER * ZOOM, rim = RIM * ZOOM;

  context.clearRect(0, 0, canvas.width, canvas.height);
  for (let y = -RIM; y < INNER + RIM; y++)
    for (let x = -RIM; x < INNER + RIM; x++) {
      const sx = rule(x, INNER), sy = rule(y, INNER), outside = x < 0 || y < 0 || x >= INNER || y >= INNER;
      if (sx === -2 || sy === -2)
        continue;
      const at = (sy * INNER + sx) * 4;
      context.globalAlpha = outside ? 0.75 : 1;
      context.fillStyle = sx < 0 || sy < 0 ? constant : `rgb(${data[at]} ${data[at + 1]} ${data[at + 2]})`;
      context.fillRect((x + RIM) * ZOOM, (y + RIM) * ZOOM, ZOOM, ZOOM);
    }
  context.globalAlpha = 1;
  context.strokeStyle = 'white';
  context.lineWidth = 2;
  context.strokeRect(rim, rim, inner, inner);
  context.strokeStyle = 'black';
  context.lineWidth = 1;
  context.strokeRect(rim - 0.5, rim - 0.5, inner + 1, inner + 1);
}

/* Returns the colour of border_value, as far as a colour can show it. */
function constantColor(text = '0') {
  const values = text.split(',').map((value) => Math.min(255, Math.max(0, parseFloat(value) || 0)));
  const [r, g = r, b = r] = values;
  return `rgb(${r} ${g} ${b})`;
}

/* Says if the choice means anything: a filter reads pixels outside of the image, by its choices if they decide
 * that, or it is made already. */
function bordersCount({ chain, common, catalogue }) {
  const all = [...chain, ...parseChain(common.luma || ''), ...parseChain(common.chroma || '')];
  const reads = ({ filter, values }) => {
    const known = catalogue?.filters.get(filter);
    return known?.border && known.parameters.every((p) => !p.border || p.border.includes(values[p.name] ?? p.default));
  };
  return Boolean(common.border) || all.some(reads);
}

export function borderView(store) {
  const box = find('#borders'), value = find('#border-value');
  let tiles = [];

  const setCommon = (name, text) => {
    const { [name]: _, ...rest } = store.state.common;
    store.set({ common: text ? { ...rest, [name]: text } : rest });
  };
  store.watch((s) => [s.catalogue], ({ catalogue }) => {
    const choices = catalogue?.common.find((p) => p.name === 'border')?.choices || [];
    const size = (INNER + 2 * RIM) * ZOOM;
    tiles = choices.map((name, i) => {
      const canvas = h('canvas', { width: size, height: size, 'aria-hidden': 'true' });
      const input = h('input', { type: 'radio', name: 'border', value: name, onchange: () => setCommon('border', i ? name : '') });
      return { name, canvas, input, first: i === 0, element: h('label', { class: 'border-tile', title: TEXTS[name] || '' }, input, canvas, h('span', {}, name)) };
    });
    box.replaceChildren(...tiles.map((tile) => tile.element));
  });
  store.watch((s) => [s.catalogue, s.image, s.common.border_value], ({ image, common }) => {
    const data = tinyImage(image);
    for (const { name, canvas } of tiles)
      paint(canvas, data, RULES[name] || RULES.replicate, constantColor(common.border_value));
  });
  store.watch((s) => [s.catalogue, s.common.border, s.common.border_value], ({ common }) => {
    for (const { name, input, first } of tiles)
      input.checked = common.border ? common.border === name : first;
    value.parentElement.hidden = common.border !== 'constant';
    value.value = common.border_value || '0';
  });
  store.watch((s) => [bordersCount(s)], (s) => { find('#border').hidden = !bordersCount(s); });
  value.addEventListener('change', () => setCommon('border_value', value.value.trim() === '0' ? '' : value.value.trim()));
}
