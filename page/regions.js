/* Regions and the region of interest: drawn on the stage, listed with their numbers. */
import { h, find, refill, signButton } from './dom.js';

const SIDES = ['x', 'y', 'width', 'height'];
const HANDLE = 9; // CSS pixels around a corner

/* Returns the shape at an index: a region, or the region of interest at -1. */
const shapeAt = (state, index) => (index === -1 ? state.roi : state.regions[index]);

function putShape(store, index, shape) {
  const { regions } = store.state;
  store.set(index === -1 ? { roi: shape } : { regions: regions.map((one, i) => (i === index ? shape : one)) });
}

/* The parameters of regions go with the last region. */
function removeShape(store, index) {
  const regions = store.state.regions.filter((_, i) => i !== index);
  const { feather, invert, ...rest } = store.state.common;
  store.set({ shape: null, ...(index === -1 ? { roi: null } : { regions }), ...(regions.length ? {} : { common: rest }) });
}

/* Returns the box between two corners, in whole pixels; limited to the image if it must lie in
 * it. */
function boxBetween(a, b, limit) {
  const clamp = (value, most) => (limit ? Math.min(most, Math.max(0, value)) : value);
  const x0 = clamp(Math.round(Math.min(a.x, b.x)), limit?.width), x1 = clamp(Math.round(Math.max(a.x, b.x)), limit?.width);
  const y0 = clamp(Math.round(Math.min(a.y, b.y)), limit?.height), y1 = clamp(Math.round(Math.max(a.y, b.y)), limit?.height);
  return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
}

const inside = (shape, at) => at.x >= shape.x && at.y >= shape.y && at.x < shape.x + shape.width && at.y < shape.y + shape.height;

/* Returns the corner opposite to the one near a point, or null. */
function farCorner(shape, at, near) {
  for (const x of [shape.x, shape.x + shape.width])
    for (const y of [shape.y, shape.y + shape.height])
      if (Math.hypot(at.x - x, at.y - y) < near)
        return { x: 2 * shape.x + shape.width - x, y: 2 * shape.y + shape.height - y };
  return null;
}

/* Begins a drag at a point of the image: it resizes, moves or makes a shape. */
export function shapeTool(store, start, scale) {
  const { tool, image, shape: selected } = store.state, isRoi = tool === 'roi', limit = isRoi ? image : null;
  const indices = isRoi ? [-1] : store.state.regions.map((_, i) => i).reverse();
  const current = selected === null ? null : shapeAt(store.state, selected);
  const far = current && indices.includes(selected) && farCorner(current, start, HANDLE / scale);
  const hit = indices.find((i) => shapeAt(store.state, i) && inside(shapeAt(store.state, i), start));

  if (far)
    return drag((to) => ({ ...current, ...boxBetween(far, to, limit) }), selected);
  if (hit !== undefined) {
    const shape = shapeAt(store.state, hit);
    store.set({ shape: hit });
    return drag((to) => {
      const corner = { x: shape.x + to.x - start.x, y: shape.y + to.y - start.y };
      return { ...shape, ...moved(shape, corner, limit) };
    }, hit);
  }
  const index = isRoi ? -1 : store.state.regions.length;
  let made = false;
  const make = (to) => ({ ...(isRoi ? {} : { shape: tool }), ...boxBetween(start, to, limit) });
  return {
    move: (to) => {
      const shape = make(to);
      if (shape.width < 2 || shape.height < 2)
        return;
      if (made || isRoi)
        putShape(store, index, shape);
      else
        store.set({ regions: [...store.state.regions, shape] });
      made = true;
      store.set({ shape: index });
    },
  };

  function drag(shapeOf, at) {
    return {
      move: (to) => {
        const shape = shapeOf(to);
        if (shape.width > 0 && shape.height > 0)
          putShape(store, at, shape);
      },
    };
  }
}

function moved(shape, corner, limit) {
  const clamp = (value, most) => Math.round(limit ? Math.min(most, Math.max(0, value)) : value);
  return { x: clamp(corner.x, limit && limit.width - shape.width), y: clamp(corner.y, limit && limit.height - shape.height) };
}

export function drawShapes(context, state, view) {
  const all = state.regions.map((shape, i) => [shape, i]);
  if (state.roi)
    all.push([state.roi, -1]);
  for (const [shape, index] of all) {
    const x = view.x + shape.x * view.scale, y = view.y + shape.y * view.scale;
    const width = shape.width * view.scale, height = shape.height * view.scale;
    context.beginPath();
    if (shape.shape === 'ellipse')
      context.ellipse(x + width / 2, y + height / 2, width / 2, height / 2, 0, 0, 7);
    else
      context.rect(x, y, width, height);
    context.lineWidth = 3;
    context.strokeStyle = 'rgb(0 0 0 / 55%)';
    context.setLineDash([]);
    context.stroke();
    context.lineWidth = 1.5;
    context.strokeStyle = index === state.shape ? '#ff8d5c' : '#ffffff';
    context.setLineDash(index === -1 ? [6, 4] : []);
    context.stroke();
    context.setLineDash([]);
    if (index === state.shape && state.tool !== 'compare')
      for (const cx of [x, x + width])
        for (const cy of [y, y + height]) {
          context.fillStyle = '#ff8d5c';
          context.fillRect(cx - 4, cy - 4, 8, 8);
          context.strokeStyle = 'rgb(0 0 0 / 55%)';
          context.strokeRect(cx - 4, cy - 4, 8, 8);
        }
  }
}

const nameOf = (shape, index) => (index === -1 ? 'Region of interest' : `${shape.shape === 'ellipse' ? 'Ellipse' : 'Rectangle'} ${index + 1}`);

function row(store, shape, index) {
  const name = nameOf(shape, index);
  const fields = SIDES.map((side) => h('label', { class: 'tiny' }, side, h('input', {
    id: `shape-${index}-${side}`, type: 'number', step: '1', min: side === 'width' || side === 'height' ? '1' : null,
    value: String(shape[side]), 'aria-label': `${name}: ${side}`,
    onchange: (event) => putShape(store, index, { ...shapeAt(store.state, index), [side]: Math.round(Number(event.target.value)) }),
  })));
  return h('li', { class: 'shape', 'aria-current': index === store.state.shape ? 'true' : null },
    h('button', { type: 'button', class: 'plain', onclick: () => store.set({ shape: index, tool: index === -1 ? 'roi' : shape.shape }) }, name),
    h('div', { class: 'four' }, ...fields),
    signButton('×', `Remove ${name}`, () => removeShape(store, index), { id: `shape-${index}-remove` }));
}

function newShape(store, tool) {
  const { image, regions } = store.state;
  const { width, height } = image;
  const box = { x: Math.round(width * 0.3), y: Math.round(height * 0.3), width: Math.round(width * 0.4), height: Math.round(height * 0.4) };

  if (tool === 'roi')
    store.set({ roi: box, shape: -1, tool });
  else
    store.set({ regions: [...regions, { shape: tool, ...box }], shape: regions.length, tool });
}

/* One more parameter that belongs to the regions. */
function setCommon(store, name, value) {
  const { [name]: _, ...rest } = store.state.common;
  store.set({ common: value ? { ...rest, [name]: value } : rest });
}

export function regionsView(store) {
  const list = find('#shapes'), settings = find('#region-settings');
  const tools = [...document.querySelectorAll('#tools [data-tool]')];

  for (const button of tools) {
    button.addEventListener('click', () => store.set({ tool: button.dataset.tool }));
    button.addEventListener('dblclick', () => button.dataset.tool !== 'compare' && store.state.image && newShape(store, button.dataset.tool));
  }
  for (const button of document.querySelectorAll('[data-new]'))
    button.addEventListener('click', () => store.state.image && newShape(store, button.dataset.new));
  addEventListener('keydown', (event) => {
    const { shape } = store.state, typing = event.target.closest?.('input, textarea, select, [role=listitem]');
    if ((event.key === 'Delete' || event.key === 'Backspace') && shape !== null && !typing && shapeAt(store.state, shape))
      removeShape(store, shape);
    if (event.key === 'Escape' && store.state.tool !== 'compare')
      store.set({ tool: 'compare' });
  });
  store.watch((s) => [s.tool], ({ tool }) => tools.forEach((button) => button.setAttribute('aria-pressed', String(button.dataset.tool === tool))));
  store.watch((s) => [s.image], ({ image }) => document.querySelectorAll('[data-new]').forEach((button) => { button.disabled = !image; }));
  store.watch((s) => [s.regions, s.roi, s.shape], ({ regions, roi }) => {
    refill(list, ...(roi ? [row(store, roi, -1)] : []), ...regions.map((shape, i) => row(store, shape, i)));
  });
  store.watch((s) => [s.regions.length, s.common.feather, s.common.invert], ({ regions, common }) => {
    refill(settings, ...(!regions.length ? [] : [
      h('label', { class: 'inline' }, 'Feather', h('input', { id: 'feather', type: 'number', min: '0', max: '1000', value: common.feather || '0',
        onchange: (event) => setCommon(store, 'feather', event.target.value === '0' ? '' : event.target.value) }), 'px'),
      h('label', { class: 'inline' }, h('input', { id: 'invert', type: 'checkbox', checked: common.invert === '1',
        onchange: (event) => setCommon(store, 'invert', event.target.checked ? '1' : '') }), 'Everywhere else instead')]));
  });
}
