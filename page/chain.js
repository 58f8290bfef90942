/* The work on an image, as state and as text. The state is
 *   chain    [{id, filter, values: {name: text}}], with the columns of matrices separated by commas
 *   common   {name: text} of the parameters that every filter takes
 *   regions  [{shape: 'rectangle' | 'ellipse', x, y, width, height} or
 *            {shape: 'polygon' | 'polygon-nonzero', corners: [{x, y}, …]}]
 *   roi      {x, y, width, height} or null
 *   mask     an image, or null: mask.js
 * The text is the query of POST /v1/chain; the page's fragment has the same, but for the mask. */
const DRAWN = new Set(['filters', 'regions', 'roi', 'sample']);
let lastId = 0;

export function makeLink(filter, values = {}) {
  return { id: ++lastId, filter, values };
}

function linkText({ filter, values }) {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${value.replaceAll(',', ' ')}`);
  return pairs.length ? `${filter}=${pairs.join(':')}` : filter;
}

function parseLink(text) {
  const [filter] = text.split('=', 1);
  const values = {};

  for (const pair of text.slice(filter.length + 1).split(':')) {
    const [name] = pair.split('=', 1);
    if (name)
      values[name] = pair.slice(name.length + 1).trim().replace(/ *; */g, ';').replace(/ +/g, ',');
  }
  return makeLink(filter.trim(), values);
}

export function chainText(chain) {
  return chain.map(linkText).join(',');
}

export function parseChain(text) {
  return text.split(',').filter((link) => link.trim()).map(parseLink);
}

const boxText = ({ x, y, width, height }) => [x, y, width, height].join(',');

/* An incomplete list has no numbers: the service refuses it, as a region that is silently left out
 * would show the pixels that it should hide. */
function parseNumbers(text, count) {
  const numbers = text.split(',').map((number) => (number.trim() ? Number(number) : NaN));
  return numbers.length === count ? numbers : Array(count).fill(NaN);
}

function parseBox(text) {
  const [x, y, width, height] = parseNumbers(text, 4);
  return { x, y, width, height };
}

export const cornersText = (corners) => corners.map(({ x, y }) => `${x},${y}`).join(' ');

export function parseCorners(text) {
  return text.split(' ').map((pair) => {
    const [x, y] = parseNumbers(pair, 2);
    return { x, y };
  });
}

function regionText(region) {
  const { shape, corners } = region;
  return (shape === 'rectangle' ? '' : `${shape}:`) + (corners ? cornersText(corners) : boxText(region));
}

function parseRegion(text) {
  const shape = /^(ellipse|polygon|polygon-nonzero):/.exec(text)?.[1] ?? 'rectangle';
  const numbers = shape === 'rectangle' ? text : text.slice(shape.length + 1);
  return { shape, ...(shape.startsWith('polygon') ? { corners: parseCorners(numbers) } : parseBox(numbers)) };
}

/* Returns the parameters of a request, [[name, text], …], without the filters. */
function commonPairs({ common, regions, roi }) {
  const pairs = Object.entries(common).filter(([, value]) => value !== '');

  if (regions.length)
    pairs.push(['regions', regions.map(regionText).join(';')]);
  if (roi)
    pairs.push(['roi', boxText(roi)]);
  return pairs;
}

/* Returns a query that people can read: only ambiguous characters are escaped. */
export function queryText(pairs) {
  const escape = (text) => encodeURIComponent(text).replace(/%20/g, '+')
    .replace(/%2C/g, ',').replace(/%3B/g, ';').replace(/%3A/g, ':').replace(/%3D/g, '=');
  return pairs.map(([name, value]) => `${name}=${escape(value)}`).join('&');
}

/* Returns the same with the filters, as POST /v1/chain takes them. */
function chainPairs(state) {
  return [...(state.chain.length ? [['filters', chainText(state.chain)]] : []), ...commonPairs(state)];
}

/* Returns the state's chain, common, regions and roi for the parameters of a preset. */
export function stateOfPreset({ parameters }) {
  const { sample, ...state } = parseFragment(queryText(Object.entries(parameters)));
  return state;
}

/* Returns the preset that the state is, perhaps with what may be given beside one: {name, pairs}. */
function presetOf(state) {
  const { presets = [], common = [] } = state.catalogue ?? {};
  const all = new Map(chainPairs(state)), beside = new Set(common.filter((p) => p.with_preset).map((p) => p.name));

  for (const preset of state.mask ? [] : presets) { // which would change what it does
    const own = new Map(chainPairs(stateOfPreset(preset))), pairs = [...all].filter(([name]) => !own.has(name));
    if ([...own].every(([name, value]) => all.get(name) === value) && pairs.every(([name]) => beside.has(name)))
      return { name: preset.name, pairs };
  }
  return null;
}

/* Returns the request for a state: {filter: name or null, preset: name or null, pairs, target}; null
 * if there is nothing to do. */
export function requestOf(state) {
  const { chain, common } = state;
  const alone = chain.length === 1 && !common.luma && !common.chroma;
  const rest = commonPairs(state), preset = presetOf(state);
  let pairs = rest;

  if (!chain.length && !common.luma && !common.chroma)
    return null;
  if (preset)
    return { ...requestFor(`v1/presets/${preset.name}`, preset.pairs), rest: preset.pairs, preset: preset.name };
  if (alone)
    pairs = [...Object.entries(chain[0].values), ...rest];
  else if (chain.length)
    pairs = [['filters', chainText(chain)], ...rest];
  return { ...requestFor(alone ? `v1/filters/${chain[0].filter}` : 'v1/chain', pairs), rest, filter: alone ? chain[0].filter : null };
}

const requestFor = (path, pairs) => ({ filter: null, preset: null, pairs, target: pairs.length ? `${path}?${queryText(pairs)}` : path });

/* Convert a state to the fragment of an address, and back. */
export function fragmentOf(state) {
  const pairs = chainPairs(state);
  if (state.image?.sample)
    pairs.push(['sample', state.image.sample]);
  return queryText(pairs);
}

export function parseFragment(text) {
  const query = new URLSearchParams(text.replace(/^#/, ''));
  const regions = (query.get('regions') || '').split(';').filter(Boolean).map(parseRegion);

  return {
    chain: parseChain(query.get('filters') || ''),
    common: Object.fromEntries([...query].filter(([name, value]) => !DRAWN.has(name) && value)),
    regions,
    roi: query.get('roi') ? parseBox(query.get('roi')) : null,
    sample: query.get('sample'),
  };
}
