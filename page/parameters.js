/* Controls for parameters, made from the catalogue: sliders from minimum to maximum, choices,
 * matrices. A value is a text, as the request has it; without one the default holds. */
import { h, signButton } from './dom.js';

/* Values that a filter begins with if its default shows nothing, or if there is none. */
export const STARTS = {
  gaussian: { sigma: '3' },
  convolve: { kernel: '-2,-1,0;-1,1,1;0,1,2' },
  resize: { width: '50%' },
  colormatrix: { matrix: '0.393,0.769,0.189,0;0.349,0.686,0.168,0;0.272,0.534,0.131,0' },
  lut: { points: '0,0;60,20;180,230;255,255' },
  levels: { black: '0.1', white: '0.8' },
  linear: { gain: '1.3', bias: '-0.05' },
};

const PRESETS = {
  'convolve.kernel': {
    Emboss: '-2,-1,0;-1,1,1;0,1,2', Soften: '1,2,1;2,4,2;1,2,1', Mean: '1,1,1;1,1,1;1,1,1', Sharpen: '0,-1,0;-1,5,-1;0,-1,0',
    Outline: '-1,-1,-1;-1,8,-1;-1,-1,-1', 'Gradient x': '-1,0,1;-2,0,2;-1,0,1', 'Gradient y': '-1,-2,-1;0,0,0;1,2,1',
    Diagonal: '1,0,0,0,0;0,1,0,0,0;0,0,1,0,0;0,0,0,1,0;0,0,0,0,1', Unchanged: '0,0,0;0,1,0;0,0,0',
  },
  'colormatrix.matrix': {
    Sepia: STARTS.colormatrix.matrix, 'Red ↔ blue': '0,0,1,0;0,1,0,0;1,0,0,0', Warm: '1.1,0.05,0,0.02;0,1,0,0;0,0,0.85,0',
    Cool: '0.88,0,0,0;0,1,0,0;0,0.05,1.12,0.02', Fade: '0.8,0.1,0.1,0.08;0.1,0.8,0.1,0.08;0.1,0.1,0.8,0.08',
    Unchanged: '1,0,0,0;0,1,0,0;0,0,1,0',
  },
  'lut.points': {
    Contrast: STARTS.lut.points, Solarize: '0,0;128,255;255,0', Lift: '0,60;255,255', Steps: '0,40;63,40;64,100;127,100;128,160;191,160;192,230;255,230',
  },
};

const parseRows = (text) => text.split(';').map((row) => row.split(','));
const rowsText = (rows) => rows.map((row) => row.join(',')).join(';');

const isWhole = (p) => p.type === 'integer' || p.type === 'odd';
/* Sliders of values that differ by their magnitude do so, too. */
const isWide = (p) => p.minimum > 0 && p.maximum / p.minimum >= 100;

export const isRequired = (p) => p.type === 'matrix' || (p.type === 'numbers' && p.name === 'matrix');
export const isOptional = (p) => p.default === null && !isRequired(p);

/* A slider has places from 0 to 1000 if the parameter's own steps would not do. */
const PLACES = 1000;

function valueAt(p, place) {
  const { minimum, maximum } = p;
  if (!isWide(p))
    return isWhole(p) ? place : Number((minimum + (maximum - minimum) * place / PLACES).toPrecision(3));
  const value = minimum * (maximum / minimum) ** (place / PLACES);
  if (p.type === 'odd')
    return Math.round((value - minimum) / 2) * 2 + minimum;
  return isWhole(p) ? Math.round(value) : Number(value.toPrecision(value < maximum * 0.99 ? 2 : 3));
}

function placeOf(p, value) {
  const { minimum, maximum } = p;
  if (!isWide(p))
    return isWhole(p) ? value : (value - minimum) / (maximum - minimum) * PLACES;
  return Math.log(Math.max(value, minimum) / minimum) / Math.log(maximum / minimum) * PLACES;
}

/* Returns a value for a parameter that has no default. */
export function startOf(p) {
  if (p.name === 'sigma_x' || p.name === 'sigma_y')
    return '3';
  if (p.type === 'odd')
    return String(Math.max(5, p.minimum));
  return p.type === 'numbers' ? '0,255' : String(Math.min(p.maximum, Math.max(p.minimum, 1)));
}

function numberControl(p, id, text, set) {
  const slides = p.maximum - p.minimum <= 1e5;
  const box = h('input', { id, type: 'text', inputmode: 'decimal', class: 'number', value: text, autocomplete: 'off', spellcheck: 'false',
    'aria-describedby': `${id}-about`,
    onchange: () => {
      if (range && Number.isFinite(parseFloat(box.value)))
        range.value = placeOf(p, parseFloat(box.value));
      set(box.value.trim());
    } });
  const range = slides && h('input', { type: 'range', class: 'slide', 'aria-label': p.name,
    min: isWide(p) || !isWhole(p) ? '0' : String(p.minimum), max: isWide(p) || !isWhole(p) ? String(PLACES) : String(p.maximum),
    step: !isWide(p) && p.type === 'odd' ? '2' : isWide(p) || isWhole(p) ? '1' : 'any',
    oninput: () => {
      box.value = String(valueAt(p, Number(range.value)));
      range.setAttribute('aria-valuetext', box.value);
      set(box.value);
    } });
  if (range) {
    range.value = placeOf(p, parseFloat(text) || 0);
    range.setAttribute('aria-valuetext', text);
  }
  return h('div', { class: 'slider' }, range, box);
}

function choiceControl(p, id, text, set) {
  if (p.choices.length > 4)
    return h('select', { id, 'aria-describedby': `${id}-about`, onchange: (event) => set(event.target.value) },
      ...p.choices.map((word) => h('option', { value: word, selected: word === text }, word)));
  return h('div', { class: 'segments', role: 'radiogroup', 'aria-label': p.name }, ...p.choices.map((word) => h('label', {},
    h('input', { type: 'radio', name: id, value: word, checked: word === text, onchange: () => set(word) }), h('span', {}, word))));
}

/* Shows rows of numbers in cells, which are tinted by their weights. */
function matrixControl(p, id, text, set, presets, resizable) {
  const box = h('div', { class: 'matrix' }), rows = parseRows(text);

  function tint() {
    const most = Math.max(...rows.flat().map((value) => Math.abs(parseFloat(value)) || 0), 1e-9);
    for (const cell of box.querySelectorAll('input')) {
      const value = parseFloat(cell.value) || 0;
      cell.style.setProperty('--weight', `${Math.round(70 * Math.abs(value) / most)}%`);
      cell.classList.toggle('below', value < 0);
    }
  }

  function build() {
    box.style.setProperty('--columns', String(rows[0].length));
    box.replaceChildren(...rows.flatMap((row, y) => row.map((value, x) => h('input', { type: 'text', inputmode: 'text', value,
      id: `${id}-${y}-${x}`, 'aria-label': `${p.name}, row ${y + 1}, column ${x + 1}`, autocomplete: 'off',
      onkeydown: (event) => walk(event, y, x),
      oninput: (event) => {
        rows[y][x] = event.target.value.trim() || '0';
        tint();
        set(rowsText(rows));
      } }))));
    tint();
  }

  function walk(event, y, x) {
    const [dy, dx] = { ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key] || [];
    if (dy === undefined)
      return;
    event.preventDefault();
    const next = document.getElementById(`${id}-${y + dy}-${x + dx}`);
    next?.focus();
    next?.select();
  }

  function take(next) {
    rows.splice(0, rows.length, ...next);
    build();
    set(rowsText(rows));
  }

  /* The middle stays the middle. */
  function resize(size) {
    const dy = (size - rows.length) / 2, dx = (size - rows[0].length) / 2;
    take(Array.from({ length: size }, (_, y) => Array.from({ length: size }, (__, x) => rows[y - dy]?.[x - dx] ?? '0')));
  }

  build();
  return h('div', { class: 'matrix-editor', role: 'group', 'aria-label': p.name },
    presetButtons(presets, (value) => take(parseRows(value))),
    box,
    resizable && h('div', { class: 'row' }, ...[3, 5, 7, 9].map((size) => h('button', { type: 'button', class: 'small', onclick: () => resize(size) }, `${size} × ${size}`))));
}

function presetButtons(presets, take) {
  return presets && h('div', { class: 'presets', role: 'group', 'aria-label': 'Presets' },
    ...Object.entries(presets).map(([name, value]) => h('button', { type: 'button', class: 'small', onclick: () => take(value) }, name)));
}

function textControl(p, id, text, set, presets) {
  const box = h('input', { id, type: 'text', value: text, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': `${id}-about`,
    onchange: () => set(box.value.trim()) });
  return h('div', {}, presetButtons(presets, (value) => {
    box.value = value;
    set(value);
  }), box);
}

function control(filter, p, id, text, set) {
  const presets = PRESETS[`${filter}.${p.name}`];

  if (p.type === 'choice')
    return choiceControl(p, id, text, set);
  if (isRequired(p))
    return matrixControl(p, id, text || '0,0,0;0,1,0;0,0,0', set, presets, p.type === 'matrix');
  if (p.type === 'numbers')
    return textControl(p, id, text, set, presets);
  return numberControl(p, id, text, set);
}

/* Shows one parameter with its name, its control and its meaning. set(text); unset() for optional
 * ones. */
export function parameterField(filter, p, text, set, unset) {
  const id = `p-${filter}-${p.name}`, plain = !['choice', 'matrix'].includes(p.type) && !isRequired(p);
  const limits = p.minimum !== undefined && p.minimum !== null && !isRequired(p) && p.maximum < 1e6 ? `${p.minimum} to ${p.maximum}` : '';
  const name = plain || p.choices?.length > 4 ? h('label', { for: id }, p.name) : h('span', { class: 'label' }, p.name);

  return h('div', { class: 'field', 'data-parameter': p.name },
    h('div', { class: 'field-head' }, name, h('span', { class: 'unit' }, [limits, p.unit].filter(Boolean).join(' ')),
      unset && signButton('×', `Leave ${p.name} out`, unset)),
    control(filter, p, id, text, set),
    h('p', { class: 'about', id: `${id}-about` }, p.text));
}
