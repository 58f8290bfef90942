/* Shows the service's activity, live: one reading of all metrics a second, and the changes since
 * the one before; times of stages are those since the reading of ten seconds before. */
import { service } from './api.js';
import { Problem } from './convolved.js';
import { chart } from './charts.js';
import { find, h } from './dom.js';
import { parse, quantile } from './metrics.js';
import { createStore } from './store.js';
import { tokenView } from './token.js';

// readings: of the charts, and back to the one that quantiles compare with
const KEPT = 120, PAST = 10;

const store = createStore({ readings: [], now: null, before: null, history: [], names: new Map(), problem: null });

/* A reading ------------------------------------------------------------------------------------- */

/* {time, all, series(name)}; all and series are as in metrics.js. */
function readingOf(text) {
  const all = parse(text), series = (name) => all.get(name)?.series || [];
  return { time: series('time_seconds')[0]?.value ?? Date.now() / 1000, all, series };
}

const fits = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);

function total(snap, name, wanted = {}, member = 'value') {
  return snap.series(name).filter(({ labels }) => fits(labels, wanted)).reduce((sum, one) => sum + one[member], 0);
}

/* Returns its growth in a second. A restart, after which it is smaller, counts as nothing. */
function rate({ now, before }, name, wanted = {}, member = 'value') {
  if (!before || now.time <= before.time)
    return 0;
  return Math.max(0, (total(now, name, wanted, member) - total(before, name, wanted, member)) / (now.time - before.time));
}

/* Returns a quantile of one series of a histogram. */
function lately({ readings }, name, one, share) {
  return seconds(quantile(one, readings[0].series(name).find(({ key }) => key === one.key), share));
}

/* Texts for people
 * ------------------------------------------------------------------------------ */

const number = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e4 ? `${(n / 1e3).toFixed(1)} k` : n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString('en') : n.toFixed(1));

function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'], i = n < 1 ? 0 : Math.min(4, Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** i).toFixed(i && n / 1000 ** i < 100 ? 1 : 0)} ${units[i]}`;
}

function seconds(s) {
  if (!s)
    return '–';
  return s < 1e-3 ? `${(s * 1e6).toFixed(0)} µs` : s < 1 ? `${(s * 1e3).toFixed(s < 0.01 ? 2 : 1)} ms` : `${s.toFixed(2)} s`;
}

function duration(s) {
  const days = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, minutes = Math.floor(s / 60) % 60;
  return days ? `${days} d ${hours} h` : hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${Math.floor(s % 60)} s` : `${Math.floor(s)} s`;
}

/* Figures and charts: rows of a table --------------------------------------------------------- */

/* A job that ends with a result is counted once in each of its stages, and has this one. */
const ENCODED = { stage: 'encode' };
const images = (s) => rate(s, 'stage_duration_seconds', ENCODED, 'count');
const answered = (s, wanted) => rate(s, 'request_duration_seconds', wanted, 'count');

const FIGURES = [
  ['Images filtered', ({ now }) => number(total(now, 'stage_duration_seconds', ENCODED, 'count')), (s) => `${number(images(s))} a second`],
  ['Failed', ({ now }) => number(total(now, 'jobs_failed_total')), (s) => `${number(rate(s, 'jobs_failed_total'))} a second`],
  ['Refused', ({ now }) => number(total(now, 'requests_rejected_total')), (s) => `${number(rate(s, 'requests_rejected_total'))} a second`],
  ['Open jobs', ({ now }) => number(total(now, 'jobs')), ({ now }) => `of at most ${number(total(now, 'jobs_limit'))}`],
  ['Wait for a small image', ({ now }) => seconds(total(now, 'admission_wait_seconds', { class: 'light' })), () => 'as predicted'],
  ['Tiles waiting', ({ now }) => number(total(now, 'tiles_queued')), ({ now }) => `${number(total(now, 'tiles_in_flight'))} on devices`],
  ['Connections', ({ now }) => number(total(now, 'connections')), ({ now }) => `of at most ${number(total(now, 'connections_limit'))}`],
  ['Asynchronous jobs', ({ now }) => number(total(now, 'stored_jobs', { state: 'open' })),
    ({ now }) => `open; ${number(total(now, 'stored_jobs', { state: 'ended' }))} ended, with ${bytes(total(now, 'stored_bytes'))} of results`],
  ['Oldest open one', ({ now }) => (total(now, 'archive_unusable') ? 'refused' : duration(total(now, 'stored_oldest_seconds'))),
    ({ now }) => (total(now, 'archive_unusable') ? 'the database cannot be used' : `${number(total(now, 'stored_changes'))} changes not on disk yet`)],
  ['Up', ({ now }) => duration(now.time - total(now, 'process_start_time_seconds')), ({ now }) => `version ${now.series('build_info')[0]?.labels.version || ''}`],
];

const CHARTS = [
  ['Images a second', images, number],
  ['Failed and refused a second', (s) => rate(s, 'jobs_failed_total') + rate(s, 'requests_rejected_total'), number],
  ['Answers a second', (s) => answered(s, {}), number],
  ['Tiles a second', (s) => rate(s, 'tiles_total'), number],
  ['Pixels through kernels', (s) => rate(s, 'kernel_bytes_total'), (n) => `${bytes(n)}/s`],
  ['Memory of bodies and answers', ({ now }) => total(now, 'spool_memory_bytes'), bytes],
  ['Processor time of the front', (s) => 100 * rate(s, 'front_cpu_seconds_total'), (n) => `${n.toFixed(n < 10 ? 1 : 0)} %`],
  // one connection is this page's
  ['Requests under way', ({ now }) => Math.max(0, total(now, 'requests') - 1), number],
];

function figuresView() {
  const cells = FIGURES.map(([title, value, note]) => {
    const dd = h('dd'), small = h('span', { class: 'note' });
    find('#figures').append(h('div', { class: 'figure' }, h('dt', {}, title), dd, h('dd', { class: 'note' }, small)));
    return (s) => {
      dd.textContent = value(s);
      small.textContent = note(s);
    };
  });
  store.watch((s) => [s.now], (s) => s.now && cells.forEach((update) => update(s)));
}

function chartsView() {
  const drawn = CHARTS.map(([title, , format]) => {
    const one = chart(KEPT), value = h('b'), most = h('span');
    find('#charts').append(h('div', { class: 'panel' }, h('div', { class: 'chart-head' }, h('h2', {}, title), value), one.element,
      h('div', { class: 'chart-foot' }, h('span', {}, '2 minutes'), most)));
    return (values) => {
      const text = format(values.at(-1) ?? 0), top = format(Math.max(...values, 0));
      value.textContent = text;
      most.textContent = `at most ${top}`;
      one.update(values, `${title}: ${text} now, at most ${top}`);
    };
  });
  store.watch((s) => [s.history], ({ history }) => history.length && drawn.forEach((update, i) => update(history.map(({ charts }) => charts[i]))));
}

/* Tables ---------------------------------------------------------------------------------------- */

/* Keeps rows in their places while their cells change; cells are texts, elements, or [text,
 * class]. */
function fillTable(id, rows) {
  const body = find(`#${id} tbody`);
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));

  for (const { key, cells } of rows) {
    const row = old.get(key) || h('tr', { 'data-key': key }, h('th', { scope: 'row' }), ...cells.slice(1).map(() => h('td')));
    cells.forEach((cell, i) => {
      const [content, name] = Array.isArray(cell) ? cell : [cell, ''], target = row.cells[i];
      if (name)
        target.className = name;
      if (content instanceof Node ? target.firstChild !== content : target.textContent !== content)
        target.replaceChildren(content);
    });
    if (old.get(key) !== row || body.rows[rows.findIndex((one) => one.key === key)] !== row)
      body.append(row);
    old.delete(key);
  }
  old.forEach((row) => row.remove());
  if (!rows.length)
    body.replaceChildren(h('tr', {}, h('th', { scope: 'row', class: 'about' }, 'nothing yet')));
}

const n = (text) => [text, 'n'];
const sparks = new Map();

function stateOf(now, device) {
  return now.series('device_state').find(({ labels, value }) => labels.device === device && value)?.labels.state || 'down';
}

function pill(text, good) {
  return h('span', { class: `pill ${good}` }, text);
}

function devicesTable({ now, history, names }) {
  return now.series('device_up').map(({ labels: { device }, value }) => {
    const spark = sparks.get(device) || chart(KEPT, true), state = stateOf(now, device);
    const rates = history.map(({ devices }) => devices[device] || 0), latest = number(rates.at(-1) || 0);
    sparks.set(device, spark);
    spark.update(rates, `${device}: ${latest} tiles a second`);
    return { key: device, cells: [h('span', {}, device, h('br'), h('span', { class: 'about' }, names.get(device) || '')),
      pill(state, value ? 'good' : state === 'starting' ? 'warn' : 'bad'), spark.element, n(latest),
      n(number(total(now, 'tiles_in_flight', { device }))), n(number(total(now, 'tiles_total', { device }))),
      n(number(total(now, 'worker_restarts_total', { worker: device }))), n(bytes(total(now, 'device_memory_bytes', { device })))] };
  });
}

function kernelsTable(s) {
  return [...s.now.series('kernel_duration_seconds')].filter(({ count }) => count).sort((a, b) => b.sum - a.sum).map((one) => {
    const moved = total(s.now, 'kernel_bytes_total', one.labels);
    return { key: `${one.labels.kernel} ${one.labels.device}`, cells: [one.labels.kernel, one.labels.device, n(number(one.count)),
      n(number(rate(s, 'kernel_duration_seconds', one.labels, 'count'))), ...[0.5, 0.99].map((share) => n(lately(s, 'kernel_duration_seconds', one, share))),
      n(one.sum ? `${bytes(moved / one.sum)}/s` : '–')] };
  });
}

function requestsTable(s) {
  return [...s.now.series('request_duration_seconds')].filter(({ count }) => count).sort((a, b) => b.count - a.count).map((one) => ({
    key: `${one.labels.route} ${one.labels.code}`,
    cells: [one.labels.route, one.labels.code, n(number(one.count)), n(number(answered(s, one.labels))),
      ...[0.5, 0.99].map((share) => n(lately(s, 'request_duration_seconds', one, share)))],
  }));
}

function stagesTable(s) {
  return s.now.series('stage_duration_seconds').filter(({ count }) => count).map((one) => ({ key: one.labels.stage,
    cells: [one.labels.stage, n(number(one.count)), n(number(rate(s, 'stage_duration_seconds', one.labels, 'count'))),
      ...[0.5, 0.9, 0.99].map((share) => n(lately(s, 'stage_duration_seconds', one, share)))] }));
}

function processesTable({ now }) {
  const restarts = (kind) => now.series('worker_restarts_total').filter(({ labels }) => labels.worker.replace(/\d+$/, '') === kind
    || (kind === 'device' && now.series('device_up').some((one) => one.labels.device === labels.worker))).reduce((sum, { value }) => sum + value, 0);
  return now.series('processes').map(({ labels: { process }, value }) => ({ key: process,
    cells: [process, n(number(value)), n(number(restarts(process))), n(bytes(total(now, 'process_memory_bytes', { process })))] }));
}

function allTable(s) {
  return [...s.now.all.values()].flatMap(({ name, text, series }) => series.map((one) => {
    const labels = Object.entries(one.labels).map(([label, value]) => `${label}="${value}"`).join(', ');
    return { key: `${name} ${labels}`, cells: [h('span', { title: text }, name, labels && h('span', { class: 'about' }, ` ${labels}`)),
      n(one.count === undefined ? String(Number(one.value.toPrecision(6))) : `${number(one.count)} times, p50 ${lately(s, name, one, 0.5)}`)] };
  }));
}

const TABLES = { devices: devicesTable, kernels: kernelsTable, requests: requestsTable, stages: stagesTable, processes: processesTable };

function tablesView() {
  const all = find('#all').closest('details');
  store.watch((s) => [s.now, s.names], (s) => {
    if (!s.now)
      return;
    for (const [id, rows] of Object.entries(TABLES))
      fillTable(id, rows(s));
    if (all.open)
      find('#all tbody').replaceChildren(...allTable(s).map(({ cells: [name, [value, kind]] }) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: kind }, value))));
  });
}

function headView() {
  const ready = find('#ready');
  store.watch((s) => [s.now, s.problem], ({ now, problem }) => {
    const [text, kind] = problem || !now ? [problem ? 'no connection' : 'connecting', problem ? 'bad' : '']
      : total(now, 'ready') ? ['ready', 'good'] : ['not ready', 'warn'];
    ready.textContent = text;
    ready.className = `pill ${kind}`;
    document.body.classList.toggle('lost', Boolean(problem));
    find('#since').textContent = now ? `As of ${new Date(now.time * 1000).toLocaleTimeString()}` : '';
    find('#problem').hidden = !problem;
    find('#problem').textContent = problem ? `${problem.title}. ${problem.detail || ''}${problem.status === 401 ? ' Enter a token above.' : ''}` : '';
  });
}

/* The readings ---------------------------------------------------------------------------------- */

function take(text) {
  const now = readingOf(text), before = store.state.now;
  if (before?.time === now.time)
    return; // the service had it still from before
  const s = { now, before, readings: [...store.state.readings, now].slice(-1 - PAST) };
  const devices = Object.fromEntries(now.series('device_up').map(({ labels: { device } }) => [device, rate(s, 'tiles_total', { device })]));
  const point = { charts: CHARTS.map(([, value]) => value(s)), devices };

  store.set({ ...s, problem: null, history: before ? [...store.state.history, point].slice(-KEPT) : [] });
}

/* Shows data that does not change every second. */
async function describe(signal) {
  const { devices } = await service.get('v1/devices', { signal });
  store.set({ names: new Map(devices.map(({ id, name }) => [id, name])) });
}

/* Waits `ms` milliseconds, or until the signal comes. */
const pause = (ms, signal) => new Promise((done) => {
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    done();
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end);
});

/* Reads once a second, but not while nobody looks. */
async function follow() {
  let stop = new AbortController();

  const restart = () => {
    stop.abort();
    stop = new AbortController();
  };
  addEventListener('tokenchange', restart);
  document.addEventListener('visibilitychange', restart);
  for (;;) {
    const { signal } = stop;
    if (document.hidden) {
      await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
      continue;
    }
    try {
      await describe(signal);
      while (!signal.aborted) {
        take(await (await service.request('metrics', { signal })).text());
        await pause(1000, signal);
      }
    } catch (error) {
      if (!signal.aborted)
        store.set({ problem: error instanceof Problem ? error : new Problem({ title: 'The connection was lost' }) });
    }
    if (!signal.aborted)
      await pause(2000, signal);
  }
}

tokenView();
headView();
figuresView();
chartsView();
tablesView();
follow();
