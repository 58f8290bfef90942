/* Regions and the region of interest: drawn on the stage, listed with their numbers. A polygon is
 * drawn by clicks; until it is closed, its corners are the state's draft. */
import { cornersText, parseCorners } from './chain.js';
import { h, find, refill, signButton } from './dom.js';

const SIDES = ['x', 'y', 'width', 'height'];
const HANDLE = 9; // CSS pixels around a corner
const CORNERS = 64; // at most

/* Returns the shape at an index: a region, or the region of interest at -1. */
const shapeAt = (state, index) => (index === -1 ? state.roi : state.regions[index]);

function putShape(store, index, shape) {
  const { regions } = store.state;
  store.set(index === -1 ? { roi: shape } : { regions: regions.map((one, i) => (i === index ? shape : one)) });
}

/* The parameters of regions go with the last region; a mask is inverted, too. */
function removeShape(store, index) {
  const regions = store.state.regions.filter((_, i) => i !== index);
  const { feather, invert, ...rest } = store.state.common, common = store.state.mask && invert ? { ...rest, invert } : rest;
  store.set({ shape: null, ...(index === -1 ? { roi: null } : { regions }), ...(regions.length ? {} : { common }) });
}

/* Returns the box between two corners, in whole pixels; limited to the image if it must lie in
 * it. */
function boxBetween(a, b, limit) {
  const clamp = (value, most) => (limit ? Math.min(most, Math.max(0, value)) : value);
  const x0 = clamp(Math.round(Math.min(a.x, b.x)), limit?.width), x1 = clamp(Math.round(Math.max(a.x, b.x)), limit?.width);
  const y0 = clamp(Math.round(Math.min(a.y, b.y)), limit?.height), y1 = clamp(Math.round(Math.max(a.y, b.y)), limit?.height);
  return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
}

const whole = ({ x, y }) => ({ x: Math.round(x), y: Math.round(y) });

const isNear = (a, b, near) => Math.hypot(a.x - b.x, a.y - b.y) < near;

/* Returns the corners of a shape, or of the box around an ellipse, in turn. */
function cornersOf({ corners, x, y, width, height }) {
  return corners ?? [{ x, y }, { x: x + width, y }, { x: x + width, y: y + height }, { x, y: y + height }];
}

/* Returns true if a line from the point to the right crosses the shape's edges an odd number of
 * times. */
function inside(shape, at) {
  const corners = cornersOf(shape);
  return corners.reduce((odd, a, i) => {
    const b = corners[(i + 1) % corners.length];
    return odd !== ((a.y > at.y) !== (b.y > at.y) && at.x < a.x + (at.y - a.y) * (b.x - a.x) / (b.y - a.y));
  }, false);
}

/* Returns the shape for each place of its corner that is near a point now, as a function; or null. */
function cornerMover(shape, at, near, limit) {
  const corners = cornersOf(shape), index = corners.findIndex((corner) => isNear(corner, at, near));
  if (index === -1)
    return null;
  if (shape.corners)
    return (to) => ({ ...shape, corners: corners.map((corner, i) => (i === index ? whole(to) : corner)) });
  return (to) => ({ ...shape, ...boxBetween(corners[(index + 2) % 4], to, limit) });
}

/* Makes a polygon of the draft. */
function closeDraft(store) {
  const { draft, regions } = store.state;
  if (draft.length >= 3)
    store.set({ draft: null, regions: [...regions, { shape: 'polygon', corners: draft }], shape: regions.length });
}

/* Adds a corner where the pointer is released, so two fingers still zoom; or closes the polygon, at
 * its first corner and, for double clicks, at its last. */
function draftTool(store, start, near) {
  const draft = store.state.draft ?? [], ends = [draft[0], draft.at(-1)];
  let at = start;

  return {
    move: (to) => { at = to; },
    end: () => {
      if (draft.length === CORNERS || ends.some((corner) => corner && isNear(corner, at, near)))
        closeDraft(store);
      else
        store.set({ draft: [...draft, whole(at)], shape: null });
    },
  };
}

/* Begins a drag at a point of the image: it resizes, moves or makes a shape. */
export function shapeTool(store, start, scale) {
  const { tool, image, shape: selected } = store.state, isRoi = tool === 'roi', limit = isRoi ? image : null;
  const indices = isRoi ? [-1] : store.state.regions.map((_, i) => i).reverse();
  const current = selected === null ? null : shapeAt(store.state, selected);
  const ofCorner = current && indices.includes(selected) && cornerMover(current, start, HANDLE / scale, limit);
  const hit = indices.find((i) => shapeAt(store.state, i) && inside(shapeAt(store.state, i), start));

  if (store.state.draft)
    return draftTool(store, start, HANDLE / scale);
  if (ofCorner)
    return drag(ofCorner, selected);
  if (hit !== undefined) {
    const shape = shapeAt(store.state, hit);
    store.set({ shape: hit });
    return drag((to) => ({ ...shape, ...moved(shape, to.x - start.x, to.y - start.y, limit) }), hit);
  }
  if (tool === 'polygon')
    return draftTool(store, start, HANDLE / scale);
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
        if (shape.corners || (shape.width > 0 && shape.height > 0))
          putShape(store, at, shape);
      },
    };
  }
}

function moved({ corners, x, y, width, height }, across, down, limit) {
  const clamp = (value, most) => Math.round(limit ? Math.min(most, Math.max(0, value)) : value);
  if (corners)
    return { corners: corners.map((corner) => whole({ x: corner.x + across, y: corner.y + down })) };
  return { x: clamp(x + across, limit && limit.width - width), y: clamp(y + down, limit && limit.height - height) };
}

export function drawShapes(context, state, view) {
  const all = state.regions.map((shape, i) => [shape, i]);
  const place = ({ x, y }) => [view.x + x * view.scale, view.y + y * view.scale];
  if (state.roi)
    all.push([state.roi, -1]);
  if (state.draft)
    all.push([{ corners: state.draft }, null]);
  for (const [shape, index] of all) {
    const corners = cornersOf(shape).map(place), [[x, y]] = corners;
    const width = shape.width * view.scale, height = shape.height * view.scale;
    context.beginPath();
    if (shape.shape === 'ellipse')
      context.ellipse(x + width / 2, y + height / 2, width / 2, height / 2, 0, 0, 7);
    else
      corners.forEach((corner) => context.lineTo(...corner));
    if (index !== null)
      context.closePath();
    else if (view.pointer)
      context.lineTo(view.pointer.x, view.pointer.y);
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
      for (const [cx, cy] of corners) {
        context.fillStyle = '#ff8d5c';
        context.fillRect(cx - 4, cy - 4, 8, 8);
        context.strokeStyle = 'rgb(0 0 0 / 55%)';
        context.strokeRect(cx - 4, cy - 4, 8, 8);
      }
  }
}

const NAMES = { rectangle: 'Rectangle', ellipse: 'Ellipse', polygon: 'Polygon', 'polygon-nonzero': 'Polygon' };
const nameOf = (shape, index) => (index === -1 ? 'Region of interest' : `${NAMES[shape.shape]} ${index + 1}`);

/* The tool that draws such shapes. */
const toolOf = (shape, index) => (index === -1 ? 'roi' : shape.corners ? 'polygon' : shape.shape);

function cornersField(store, { corners }, index, name) {
  return h('label', { class: 'tiny all' }, 'corners', h('input', {
    id: `shape-${index}-corners`, type: 'text', autocomplete: 'off', spellcheck: 'false', value: cornersText(corners), 'aria-label': `${name}: corners`,
    onchange: (event) => putShape(store, index, { ...shapeAt(store.state, index), corners: parseCorners(event.target.value.trim()) }),
  }));
}

function row(store, shape, index) {
  const name = nameOf(shape, index);
  const fields = shape.corners ? [cornersField(store, shape, index, name)] : SIDES.map((side) => h('label', { class: 'tiny' }, side, h('input', {
    id: `shape-${index}-${side}`, type: 'number', step: '1', min: side === 'width' || side === 'height' ? '1' : null,
    value: String(shape[side]), 'aria-label': `${name}: ${side}`,
    onchange: (event) => putShape(store, index, { ...shapeAt(store.state, index), [side]: Math.round(Number(event.target.value)) }),
  })));
  return h('li', { class: 'shape', 'aria-current': index === store.state.shape ? 'true' : null },
    h('button', { type: 'button', class: 'plain', onclick: () => store.set({ shape: index, tool: toolOf(shape, index) }) }, name),
    h('div', { class: 'four' }, ...fields),
    signButton('×', `Remove ${name}`, () => removeShape(store, index), { id: `shape-${index}-remove` }));
}

const diamond = ({ x, y, width, height }) =>
  [[0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5]].map(([across, down]) => whole({ x: x + across * width, y: y + down * height }));

function newShape(store, tool) {
  const { image, regions } = store.state;
  const { width, height } = image;
  const box = { x: Math.round(width * 0.3), y: Math.round(height * 0.3), width: Math.round(width * 0.4), height: Math.round(height * 0.4) };

  if (tool === 'roi')
    store.set({ roi: box, shape: -1, tool });
  else
    store.set({ regions: [...regions, { shape: tool, ...(tool === 'polygon' ? { corners: diamond(box) } : box) }], shape: regions.length, tool });
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
    button.addEventListener('dblclick', () => !['compare', 'paint'].includes(button.dataset.tool) && store.state.image && newShape(store, button.dataset.tool));
  }
  for (const button of document.querySelectorAll('[data-new]'))
    button.addEventListener('click', () => store.state.image && newShape(store, button.dataset.new));
  addEventListener('keydown', (event) => {
    const { draft, shape } = store.state, typing = event.target.closest?.('input, textarea, select, [role=listitem]');
    if ((event.key === 'Delete' || event.key === 'Backspace') && shape !== null && !typing && shapeAt(store.state, shape))
      removeShape(store, shape);
    if (event.key === 'Enter' && draft && !typing) {
      event.preventDefault(); // a button that has the focus is not pressed
      closeDraft(store);
    }
    if (event.key === 'Escape' && draft)
      store.set({ draft: null });
    else if (event.key === 'Escape' && store.state.tool !== 'compare')
      store.set({ tool: 'compare' });
  });
  store.watch((s) => [s.tool, s.image], ({ draft }) => draft && store.set({ draft: null }));
  store.watch((s) => [s.tool], ({ tool }) => tools.forEach((button) => button.setAttribute('aria-pressed', String(button.dataset.tool === tool))));
  store.watch((s) => [s.image], ({ image }) => document.querySelectorAll('[data-new]').forEach((button) => { button.disabled = !image; }));
  store.watch((s) => [s.regions, s.roi, s.shape], ({ regions, roi }) => {
    refill(list, ...(roi ? [row(store, roi, -1)] : []), ...regions.map((shape, i) => row(store, shape, i)));
  });
  store.watch((s) => [s.regions.length, Boolean(s.mask), s.common.feather, s.common.invert], ({ regions, mask, common }) => {
    refill(settings, ...(!regions.length && !mask ? [] : [
      regions.length && h('label', { class: 'inline' }, 'Feather', h('input', { id: 'feather', type: 'number', min: '0', max: '1000', value: common.feather || '0',
        onchange: (event) => setCommon(store, 'feather', event.target.value === '0' ? '' : event.target.value) }), 'px'),
      h('label', { class: 'inline' }, h('input', { id: 'invert', type: 'checkbox', checked: common.invert === '1',
        onchange: (event) => setCommon(store, 'invert', event.target.checked ? '1' : '') }), 'Everywhere else instead')]));
  });
}
