/* Previews: a large image is tried at a smaller size, which the service makes of it once. Lengths in
 * pixels are to its scale, by the units of the catalogue. */
import { service } from './api.js';
import { chainText, parseChain } from './chain.js';

const PIXELS = 1.5e6; // larger images have previews, of at most so many

/* Parameters for the whole image alone: with one of them there is no preview. */
const WHOLE = ['alpha', 'page', 'raw', 'target', 'variant'];
/* Parameters of the file that is saved; a preview is a PNG. */
const FILE = new Set(['background', 'compression', 'format', 'lossless', 'pages', 'quality', 'strip', 'subsample']);
const CHAINS = new Set(['luma', 'chroma']);

const ROUND = { number: (value) => value, integer: Math.round, odd: (value) => 2 * Math.round((value - 1) / 2) + 1 };

/* Returns the scale, in whole percent, at which a state's image is tried; 100: as it is. */
export function previewPercent({ image, common, catalogue }) {
  if (!image || !catalogue || WHOLE.some((name) => common[name]))
    return 100;
  return Math.min(100, Math.max(1, Math.floor(100 * Math.sqrt(PIXELS / (image.width * image.height)))));
}

const isLength = (p) => /^pixels\b/.test(p?.unit);

/* Returns a length at a scale. Percentages, and values that the service refuses, remain.
 * A window does not shrink to a single pixel: that would show nothing. */
function valueAt(p, text, scale) {
  const value = Number(text), { minimum, maximum } = p, round = ROUND[p.type];
  if (!(value >= minimum && value <= maximum) || round(value) !== value)
    return text;
  const least = p.type === 'odd' ? Math.min(value, Math.max(minimum, 3)) : minimum;
  return String(Math.max(least, round(value * scale)));
}

/* Returns the same for all of a filter's values, and for defaults. */
function linkAt(link, catalogue, scale) {
  const values = { ...link.values };
  for (const p of catalogue.filters.get(link.filter)?.parameters.filter(isLength) ?? [])
    if (p.name in values || p.default !== null)
      values[p.name] = valueAt(p, values[p.name] ?? String(p.default), scale);
  return { ...link, values };
}

/* Returns true if corners are all on a line. */
const isFlat = (corners) => corners.every(({ x, y }, i) => {
  const [first] = corners, before = corners.at(i - 1);
  return (before.x - first.x) * (y - first.y) === (before.y - first.y) * (x - first.x);
});

/* Returns the state's request for a smaller image, as a state. */
export function previewOf(state, small) {
  const { image, catalogue } = state, scale = Math.sqrt(small.width * small.height / (image.width * image.height));
  const links = (chain) => chain.map((link) => linkAt(link, catalogue, scale));
  const textAt = (name, text) => {
    const p = catalogue.common.find((one) => one.name === name);
    return CHAINS.has(name) ? chainText(links(parseChain(text))) : isLength(p) ? valueAt(p, text, scale) : text;
  };
  const common = Object.entries(state.common).filter(([name]) => !FILE.has(name)).map(([name, text]) => [name, textAt(name, text)]);

  /* All pixels that the box touches: what it hides stays hidden, and a box in the image stays in it. */
  const boxAt = ({ x, y, width, height, ...rest }) => {
    const left = Math.floor(x * small.width / image.width), right = Math.ceil((x + width) * small.width / image.width);
    const top = Math.floor(y * small.height / image.height), bottom = Math.ceil((y + height) * small.height / image.height);
    return { ...rest, x: left, y: top, width: right - left, height: bottom - top };
  };
  /* Corners move away from the middle, so what the polygon hides stays hidden; if only a line would be
   * left, the box around it is taken. */
  const polygonAt = ({ corners, ...rest }) => {
    const all = { x: corners.map(({ x }) => x), y: corners.map(({ y }) => y) };
    const [x, y] = [Math.min(...all.x), Math.min(...all.y)], width = Math.max(...all.x) - x, height = Math.max(...all.y) - y;
    const away = (place, middle, ratio) => (place < middle ? Math.floor : Math.ceil)(place * ratio);
    const places = corners.map((corner) => ({
      x: away(corner.x, x + width / 2, small.width / image.width), y: away(corner.y, y + height / 2, small.height / image.height) }));
    return isFlat(places) && !isFlat(corners) ? boxAt({ shape: 'rectangle', x, y, width, height }) : { ...rest, corners: places };
  };
  return {
    ...state, image: small, chain: links(state.chain), common: { ...Object.fromEntries(common), format: 'png' },
    regions: state.regions.map((region) => (region.corners ? polygonAt(region) : boxAt(region))), roi: state.roi && boxAt(state.roi),
  };
}

/* The smaller version of the present image: {stop, version}. It is made once, whatever becomes of
 * the requests that wait for it. */
let making = null;

export function forgetSmall() {
  making?.stop.abort();
  making = null;
}

export function smallImage(image, percent) {
  if (!making) {
    const stop = new AbortController(), mine = { stop, version: makeSmall(image, percent, stop.signal) };
    making = mine;
    mine.version.catch(() => { making = making === mine ? null : making; });
  }
  return making.version;
}

/* A PNG, unless that would lose something of the image, such as floats. */
async function makeSmall({ blob }, percent, signal) {
  const make = (format) => service.apply(blob, { filter: 'resize', width: `${percent}%` }, { format }, { signal, bar: true });
  let answer = await make('png');
  if (answer.lost.some((word) => word !== 'first-frame'))
    answer = await make('tiff');
  return { blob: answer.blob, ...answer.image };
}
