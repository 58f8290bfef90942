/* The answer's headers, for people: Server-Timing as a waterfall, the workers of each stage,
 * losses, the findings of verify=1. */
import { find, h } from './dom.js';
import { outcomeOf, same, workOf } from './run.js';

const STAGES = { receive: 'receive', queue: 'queue', compile: 'compile', wait: 'wait', decode: 'decode', upload: 'upload', download: 'download', encode: 'encode', verify: 'verify', reference: 'reference' };
const LOST = {
  'first-frame': 'only the first frame', flattened: 'alpha blended', converted: 'converted to sRGB', reduced: 'fewer bits',
  palette: 'palette of 256 colours', subsampled: 'colour at half resolution', lossy: 'lossy',
};

/* Returns the starts of the bars. Only their lengths are known, and from the decoder on stages
 * overlap: those that do not fit one after another are pushed together, the first at the end of the
 * queue, the last at the end of all. */
export function place(entries) {
  const length = (name) => entries.find((entry) => entry.name === name)?.ms ?? 0;
  const stages = entries.filter(({ name }) => name !== 'total');
  const total = Math.max(length('total'), ...stages.map(({ ms }) => ms), 1e-6);
  const head = length('receive') + length('queue');
  const sum = stages.reduce((all, { ms }) => all + ms, 0) - head, room = Math.max(total - head, 0);
  let before = 0;

  return { total, bars: stages.map(({ name, ms }) => {
    if (name === 'receive' || name === 'queue')
      return { name, ms, start: name === 'queue' ? length('receive') : 0 };
    const start = head + (sum > room && sum > ms ? before * Math.max(room - ms, 0) / (sum - ms) : before);
    before += ms;
    return { name, ms, start };
  }) };
}

const time = (ms) => (ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2));

/* decode=gpu0, encode=cpu, or one for both. */
function codecOf(header, side) {
  return header && (header.split(',').map((part) => part.trim().split('=')).find(([name, who]) => who && name === side)?.[1] ?? (header.includes('=') ? null : header));
}

function whose(name, headers) {
  if (name === 'decode' || name === 'encode')
    return codecOf(headers.get('X-Codec'), name);
  if (name === 'verify' || name === 'reference')
    return 'cpu';
  return STAGES[name] && name !== 'upload' && name !== 'download' ? null : headers.get('X-Device')?.split(' ')[0];
}

function bar({ name, ms, start }, total, headers) {
  const fill = h('span', { class: STAGES[name] ? `band ${name}` : 'band kernel' }), who = whose(name, headers);
  fill.style.setProperty('left', `${100 * start / total}%`);
  fill.style.setProperty('width', `${Math.max(100 * ms / total, 0.4)}%`);
  return h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'who' }, who || ''), h('td', { class: 'track' }, fill), h('td', { class: 'ms' }, time(ms)));
}

function badge(kind, text, title) {
  return h('span', { class: `badge ${kind}`, title }, text);
}

function verdict(headers) {
  const [samples, mismatches, largest] = ['Samples', 'Mismatches', 'Max-Difference'].map((name) => headers.get(`X-Verify-${name}`));
  if (samples === null)
    return null;
  return mismatches === '0'
    ? badge('good', `✓ verified: ${Number(samples).toLocaleString()} samples`, `Each was computed a second time; the largest difference is ${largest}`)
    : badge('warn', `${mismatches} samples were wrong and have been replaced`, `The largest difference was ${largest}`);
}

const bytes = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e3).toFixed(n >= 1e5 ? 0 : 1)} kB`);

export function timingView(store) {
  const table = find('#waterfall'), badges = find('#badges'), save = find('#save'), saveWhole = find('#save-whole');
  let url = null, wish = null; // the work whose whole result is to be saved once it is there

  saveWhole.addEventListener('click', () => store.set({ whole: wish = workOf(store.state) }));

  store.watch((s) => [outcomeOf(s)], (s) => {
    const { state, result } = outcomeOf(s);
    find('#busy').hidden = state !== 'busy';
    find('#timing-empty').hidden = Boolean(result);
    table.hidden = !result;
    save.hidden = result?.percent !== 100;
    saveWhole.hidden = !result || result.percent === 100;
    for (const part of [badges, table.tBodies[0], table.tFoot])
      part.replaceChildren();
    URL.revokeObjectURL(url);
    save.removeAttribute('href');
    if (!result)
      return;
    const { blob, headers, image: kind, lost, timing } = result.answer, { total, bars } = place(timing);
    table.tBodies[0].replaceChildren(...bars.filter(({ ms }) => ms > 0).map((one) => bar(one, total, headers)));
    table.tFoot.replaceChildren(h('tr', {}, h('th', { scope: 'row' }, 'total'), h('td', { class: 'trip', colspan: '2' }, `${time(result.ms)} with the way here and back`), h('td', { class: 'ms' }, time(total))));
    url = URL.createObjectURL(blob);
    save.href = url;
    save.download = `${s.image.name.replace(/\.\w+$/, '')}-filtered.${(blob.type.split('/')[1] || 'bin').replace('jpeg', 'jpg')}`;
    const device = headers.get('X-Device');
    badges.append(...[result.percent < 100 && badge('warn', `preview at ${result.percent} %`, 'All of this is about a smaller version, with lengths to its scale; saving filters the whole image'),
      verdict(headers), badge('', `${kind.width} × ${kind.height} × ${kind.bands}:${kind.type} · ${bytes(blob.size)}`, 'Width, height and bands of the answer, and the size of its file'),
      device && badge('', device.replace(/ \([^)]*\)/g, ''), device),
      lost.length && badge('', lost.map((word) => LOST[word] || word).join(', '), 'What the format has lost')].filter(Boolean));
    if (wish && same(workOf(s), wish))
      save.click();
    wish = null;
  });
}
