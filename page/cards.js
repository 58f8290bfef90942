/* The cards of all filters, each with its result for the image; the chain as chips; and the
 * parameters of the chosen one. */
import { service } from './api.js';
import { chainText, makeLink, stateOfPreset } from './chain.js';
import { announce, find, h, refill, signButton } from './dom.js';
import { problemOf } from './run.js';
import { withMask } from './mask.js';
import { STARTS, isOptional, parameterField, startOf } from './parameters.js';

/* The order of cards; filters that are in no group come last. */
const GROUPS = [
  ['Blur', ['gaussian', 'box', 'motion', 'bilateral', 'median', 'pixelate']],
  ['Sharpen and relief', ['sharpen', 'unsharp', 'highpass', 'emboss']],
  ['Edges', ['sobel', 'scharr', 'prewitt', 'laplacian', 'log', 'dog', 'canny']],
  ['Colour and tone', ['levels', 'gamma', 'linear', 'equalize', 'threshold', 'invert', 'grayscale', 'colormatrix', 'lut']],
  ['Shape', ['erode', 'dilate', 'open', 'close', 'tophat', 'blackhat', 'morphgradient', 'rank']],
  ['Size', ['resize']],
  ['Your own', ['convolve']],
];
const PREVIEW = { width: 120, height: 80 };

function grouped(filters) {
  const left = new Map(filters);
  const groups = GROUPS.map(([title, names]) => [title, names.filter((name) => left.has(name)).map((name) => {
    const filter = left.get(name);
    left.delete(name);
    return filter;
  })]);
  return [...groups, ['More', [...left.values()]]].filter(([, list]) => list.length);
}

export function addFilter(store, name) {
  const link = makeLink(name, { ...STARTS[name] });
  store.set({ chain: [...store.state.chain, link], selected: link.id });
  announce(`${name} added`);
  queueMicrotask(() => find('#parameters').scrollIntoView({ block: 'nearest' })); // once they are there
}

/* Cards --------------------------------------------------------------------------------------- */

/* Returns a small copy of the image's middle, as a file. */
async function smallFile(image) {
  const canvas = new OffscreenCanvas(PREVIEW.width, PREVIEW.height), context = canvas.getContext('2d');
  const scale = Math.max(PREVIEW.width / image.width, PREVIEW.height / image.height);
  const width = image.width * scale, height = image.height * scale;

  context.imageSmoothingQuality = 'high';
  context.drawImage(image.bitmap, (PREVIEW.width - width) / 2, (PREVIEW.height - height) / 2, width, height);
  return canvas.convertToBlob({ type: 'image/png' });
}

/* Fills the cards in sight, one request after another, behind all other work; stops at the first
 * refusal, as previews are not worth more. */
function previews(cards) {
  const wanted = [], seen = new WeakSet();
  let file = null, run = 0, working = false;

  async function work() {
    working = true;
    while (file && wanted.length) {
      const card = wanted.shift(), { filter } = card.dataset, mine = run;
      try {
        const answer = await service.apply(file, chainText([makeLink(filter, STARTS[filter] || {})]), { format: 'png', priority: 'batch' });
        const bitmap = await createImageBitmap(answer.blob);
        if (mine === run) {
          card.querySelector('canvas').getContext('2d').drawImage(bitmap, 0, 0);
          card.classList.add('seen');
          seen.add(card);
        }
      } catch (problem) {
        if (mine === run && problem.status !== 400 && problem.status !== 422)
          wanted.length = 0;
      }
    }
    working = false;
  }

  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const at = wanted.indexOf(target);
      if (isIntersecting && at < 0 && !seen.has(target))
        wanted.push(target);
      else if (!isIntersecting && at >= 0)
        wanted.splice(at, 1);
    }
    if (!working)
      work();
  });

  return async (image) => {
    const mine = ++run;
    observer.disconnect();
    wanted.length = 0;
    file = null;
    for (const card of cards) { // no picture of another image remains
      card.classList.remove('seen');
      card.querySelector('canvas').getContext('2d').clearRect(0, 0, PREVIEW.width, PREVIEW.height);
    }
    if (!image)
      return;
    const small = await smallFile(image);
    if (mine !== run)
      return;
    file = small;
    cards.forEach((card) => {
      seen.delete(card);
      observer.observe(card);
    });
  };
}

function card(store, filter) {
  return h('button', { type: 'button', class: 'card', 'data-filter': filter.name, title: filter.text, onclick: () => addFilter(store, filter.name) },
    h('canvas', { width: PREVIEW.width, height: PREVIEW.height, 'aria-hidden': 'true' }), h('span', {}, filter.name));
}

function presetCard(store, preset) {
  const { filters, ...rest } = preset.parameters;
  const title = [filters, ...Object.entries(rest).map((pair) => pair.join('='))].filter(Boolean).join(' & ');

  return h('button', { type: 'button', class: 'card', title, onclick: () => {
    const state = stateOfPreset(preset);
    store.set({ ...withMask(store.state, null), ...state, selected: state.chain[0]?.id ?? null, shape: null, revision: store.state.revision + 1 });
    announce(`${preset.name} loaded`);
  } }, h('span', {}, preset.name));
}

export function cardsView(store) {
  const shelf = find('#cards'), search = find('#search');
  let show = () => {};

  store.watch((s) => [s.catalogue], ({ catalogue }) => {
    if (!catalogue)
      return;
    const group = (title, cards) => h('section', { class: 'group' }, h('h2', {}, title), h('div', { class: 'shelf' }, ...cards));
    shelf.replaceChildren(...(catalogue.presets.length ? [group('Presets', catalogue.presets.map((preset) => presetCard(store, preset)))] : []),
      ...grouped(catalogue.filters).map(([title, filters]) => group(title, filters.map((filter) => card(store, filter)))));
    show = previews([...shelf.querySelectorAll('.card[data-filter]')]);
    show(store.state.image);
  });
  store.watch((s) => [s.image], ({ image }) => show(image));
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const group of shelf.querySelectorAll('.group')) {
      const cards = [...group.querySelectorAll('.card')];
      for (const one of cards)
        one.hidden = !words.every((word) => `${one.textContent} ${one.title}`.toLowerCase().includes(word));
      group.hidden = cards.every((one) => one.hidden);
    }
  });
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter')
      shelf.querySelector('.group:not([hidden]) .card:not([hidden])')?.click();
  });
}

/* Chips --------------------------------------------------------------------------------------- */

function move(store, from, to) {
  const chain = [...store.state.chain];
  if (to < 0 || to >= chain.length || from === to)
    return;
  chain.splice(to, 0, ...chain.splice(from, 1));
  store.set({ chain });
  announce(`${chain[to].filter} is now number ${to + 1} of ${chain.length}`);
}

function remove(store, id) {
  const { chain, selected } = store.state, at = chain.findIndex((link) => link.id === id);
  const left = chain.filter((link) => link.id !== id);
  store.set({ chain: left, selected: selected === id ? (left[Math.min(at, left.length - 1)]?.id ?? null) : selected });
  announce(`${chain[at].filter} removed`);
}

const summary = ({ values }) => Object.entries(values).map(([name, value]) => (value.length > 12 ? name : `${name} ${value}`)).join(', ');

/* Dragging a chip swaps it with those whose middle it passes. */
function dragChip(store, list, id) {
  return (event) => {
    if (event.button)
      return;
    const grip = event.currentTarget;
    const onMove = (to) => {
      const from = store.state.chain.findIndex((link) => link.id === id);
      const at = [...list.children].findIndex((chip) => {
        const box = chip.getBoundingClientRect();
        return to.clientX >= box.left && to.clientX < box.right && to.clientY >= box.top && to.clientY < box.bottom;
      });
      if (at >= 0)
        move(store, from, at);
    };
    const end = () => {
      removeEventListener('pointermove', onMove);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
      list.classList.remove('dragging');
    };
    event.preventDefault();
    grip.focus();
    store.set({ selected: id });
    list.classList.add('dragging');
    addEventListener('pointermove', onMove);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
  };
}

function chip(store, list, link, at) {
  const keys = {
    ArrowLeft: () => move(store, at, at - 1), ArrowUp: () => move(store, at, at - 1),
    ArrowRight: () => move(store, at, at + 1), ArrowDown: () => move(store, at, at + 1),
  };
  return h('li', { class: 'chip', 'data-filter': link.filter, 'data-selected': String(store.state.selected === link.id) },
    h('button', { type: 'button', class: 'grip', id: `grip-${link.id}`, 'aria-label': `Move ${link.filter}, with the arrow keys`, title: 'Drag, or use the arrow keys',
      onpointerdown: dragChip(store, list, link.id),
      onkeydown: (event) => {
        if (keys[event.key]) {
          event.preventDefault();
          keys[event.key]();
        }
      } }, '⠿'),
    h('button', { type: 'button', class: 'plain', id: `chip-${link.id}`, 'aria-pressed': String(store.state.selected === link.id),
      onclick: () => store.set({ selected: link.id }),
      onkeydown: (event) => {
        if (event.key === 'Delete' || event.key === 'Backspace')
          remove(store, link.id);
      } }, h('span', { class: 'chip-name' }, link.filter), h('span', { class: 'chip-values' }, summary(link))),
    signButton('×', `Remove ${link.filter}`, () => remove(store, link.id), { id: `remove-${link.id}` }));
}

export function chainView(store) {
  const list = find('#chain');

  store.watch((s) => [s.chain, s.selected], ({ chain }) => {
    refill(list, ...chain.map((link, at) => chip(store, list, link, at)));
    find('#no-chain').hidden = chain.length > 0;
    find('#clear').hidden = chain.length === 0;
  });
  find('#clear').addEventListener('click', () => store.set({ chain: [], selected: null }));
}

/* Parameters ---------------------------------------------------------------------------------- */

function setValue(store, id, name, text) {
  store.set({ chain: store.state.chain.map((link) => {
    if (link.id !== id)
      return link;
    const { [name]: _, ...rest } = link.values;
    return { ...link, values: text === null || text === '' ? rest : { ...rest, [name]: text } };
  }) });
}

/* The fields are built when another filter is chosen, or an optional parameter comes or goes, but
 * not while a slider is moved. */
export function parametersView(store) {
  const box = find('#parameters');
  const chosen = (s) => s.chain.find((link) => link.id === s.selected);
  const present = (s) => Object.keys(chosen(s)?.values || {}).sort().join();
  let revision = 0;

  function optional(filter, link) {
    const missing = filter.parameters.filter((p) => isOptional(p) && !(p.name in link.values));
    return missing.length > 0 && h('div', { class: 'row wrap' }, ...missing.map((p) => h('button', { type: 'button', class: 'small', title: p.text,
      onclick: () => setValue(store, link.id, p.name, startOf(p)) }, `+ ${p.name}`)));
  }

  store.watch((s) => [s.catalogue, s.selected, chosen(s) === undefined, optionalNames(s, chosen, present), s.revision], (s) => {
    const link = chosen(s), filter = link && s.catalogue?.filters.get(link.filter);

    revision++;
    if (!filter) {
      box.replaceChildren(...(link && s.catalogue ? [h('p', { class: 'about' }, `This service has no filter ${link.filter}.`)] : []));
      return;
    }
    refill(box, h('div', { class: 'parameters-head' }, h('h3', {}, link.filter), h('p', { class: 'about' }, filter.text)),
      ...filter.parameters.filter((p) => !isOptional(p) || p.name in link.values).map((p) => parameterField(link.filter, p,
        link.values[p.name] ?? (p.default === null ? '' : String(p.default)),
        (text) => setValue(store, link.id, p.name, text),
        isOptional(p) ? () => setValue(store, link.id, p.name, null) : null)),
      optional(filter, link));
  });
  store.watch((s) => [problemOf(s), s.selected, revision], (s) => {
    const problem = problemOf(s);
    for (const field of document.querySelectorAll('[data-parameter]')) {
      const wrong = problem?.parameter === field.dataset.parameter;
      field.classList.toggle('wrong', wrong);
      field.querySelector('input, select')?.setAttribute('aria-invalid', String(wrong));
    }
  });
}

/* Returns the names of the optional parameters that are given: others come and go without a new
 * field. */
function optionalNames(s, chosen, present) {
  const filter = s.catalogue?.filters.get(chosen(s)?.filter);
  const names = new Set(filter?.parameters.filter(isOptional).map((p) => p.name));
  return present(s).split(',').filter((name) => names.has(name)).join();
}
