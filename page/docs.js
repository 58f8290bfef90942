/* The API, from its own description (openapi.json). */
import { service } from './api.js';
import { find, h, refill } from './dom.js';
import { tokenView } from './token.js';

const OF_FILTER = /^\/v1\/filters\/([a-z]\w*)$/;
const TITLES = { filters: 'Filters', chain: 'Chains', jobs: 'Asynchronous jobs', devices: 'Devices', kernels: 'Kernels', metrics: 'Metrics', service: 'The service' };

/* Returns the target of a $ref, with its name. */
function resolve(api, node) {
  if (!node.$ref)
    return node;
  const target = node.$ref.split('/').slice(1).reduce((at, step) => at[step], api);
  return { name: node.$ref.split('/').at(-1), ...target };
}

/* Returns a schema in a few words. */
function kind(schema) {
  if (schema.$ref)
    return schema.$ref.split('/').at(-1);
  if (schema.contentSchema)
    return `${kind(schema.contentSchema)} as JSON`;
  if (schema.enum)
    return schema.enum.join(' | ');
  if (schema.oneOf)
    return [...new Set(schema.oneOf.map(kind))].join(' or ');
  if (schema.type === 'array')
    return `list of ${kind(schema.items)}`;
  const types = [schema.type].flat().filter(Boolean).join(' or ') || 'any';
  const odd = schema.not?.multipleOf === 2 ? 'odd ' : '';
  return schema.minimum === undefined ? `${odd}${types}` : `${odd}${types}, ${schema.minimum} to ${schema.maximum}`;
}

function parameterTable(api, parameters, title) {
  if (!parameters.length)
    return null;
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title }, h('table', { class: 'data' },
    h('thead', {}, h('tr', {}, ...['Parameter', 'Value', 'Default', 'Meaning'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, ...parameters.map((p) => h('tr', {}, h('th', { scope: 'row' }, p.name, p.required ? h('span', { class: 'about' }, ' required') : null),
      h('td', {}, kind(p.schema)), h('td', {}, p.schema.default === undefined ? '' : String(p.schema.default)), h('td', {}, p.description || ''))))));
}

function answersTable(api, responses, title) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const { description, content = {} } = resolve(api, response), media = Object.keys(content);
    const schema = content[media[0]]?.schema;
    return h('tr', {}, h('th', { scope: 'row' }, status), h('td', {}, description),
      h('td', {}, media.length > 3 ? 'an image' : media.join(', '), schema?.$ref && !media[0].includes('problem') ? h('a', { href: `#schema-${kind(schema)}` }, ` ${kind(schema)}`) : null));
  });
  return h('details', {}, h('summary', {}, 'Answers'), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title }, h('table', { class: 'data' },
    h('thead', {}, h('tr', {}, ...['Status', 'When', 'Content'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))));
}

/* Shows an operation; parameters that many have are listed once, at the end. */
function operation(api, { path, method, what }) {
  const parameters = what.parameters.filter((p) => !p.$ref), shared = what.parameters.length - parameters.length;
  const filter = OF_FILTER.exec(path), isFilter = filter && method === 'post';

  return h('section', { class: 'operation panel', id: what.operationId },
    h('h3', {}, h('span', { class: `method ${method}` }, method.toUpperCase()), path), h('p', {}, what.summary),
    parameterTable(api, parameters, `Parameters of ${method} ${path}`),
    shared > 3 ? h('p', { class: 'about' }, 'And the ', h('a', { href: '#common' }, 'parameters that all have'), '.',
      isFilter ? h('span', {}, ' ', h('a', { href: `./#sample=spheres&filters=${filter[1]}` }, 'Try it')) : null) : null,
    answersTable(api, what.responses, `Answers of ${method} ${path}`));
}

function operationsOf(api) {
  const groups = new Map(Object.keys(TITLES).map((tag) => [tag, []]));
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, what] of Object.entries(methods)) {
      const [tag] = what.tags, list = groups.get(tag) || [], single = method === 'get' && OF_FILTER.test(path);
      const one = { path: single ? '/v1/filters/NAME' : path, method, what }; // for all filters alike
      if (!list.some((other) => other.path === one.path && other.method === method))
        groups.set(tag, [...list, one]);
    }
  return [...groups].filter(([, list]) => list.length);
}

function schema(name, { properties = {}, required = [], type }) {
  const rows = Object.entries(properties).map(([member, one]) => h('tr', {}, h('th', { scope: 'row' }, member),
    h('td', {}, kind(one).slice(0, 400)), h('td', { class: 'about' }, required.includes(member) ? '' : 'may be missing')));
  return h('section', { class: 'operation panel', id: `schema-${name}` }, h('h3', {}, name), rows.length
    ? h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': name }, h('table', { class: 'data' }, h('thead', {}, h('tr', {}, ...['Member', 'Value', ''].map((text) => (text ? h('th', { scope: 'col' }, text) : h('td'))))), h('tbody', {}, ...rows)))
    : h('p', { class: 'about' }, type === 'array' ? 'A list of filters, each an object with `filter` and its parameters.' : type || ''));
}

function render(api) {
  const groups = operationsOf(api), { schemas, parameters, responses } = api.components;
  const entry = ({ path, method, what }) => h('a', { href: `#${what.operationId}` }, OF_FILTER.exec(path)?.[1] ?? `${method.toUpperCase()} ${path.replace('/v1', '')}`);
  const problems = Object.entries(responses).filter(([name]) => /^Problem\d/.test(name));

  refill(find('#contents'), ...groups.map(([tag, list]) => h('div', {}, h('h2', {}, TITLES[tag] || tag), ...list.map(entry))),
    h('div', {}, h('h2', {}, 'For all'), h('a', { href: '#common' }, 'Parameters'), h('a', { href: '#errors' }, 'Errors'), h('a', { href: '#schemas' }, 'Objects')));
  refill(find('#article'), h('div', { class: 'operation' }, h('h1', {}, 'The API'),
    h('p', {}, `${api.info.description} Version ${api.info.version}; for programs: `, h('a', { href: 'openapi.json' }, 'openapi.json'), '.'),
    h('pre', {}, h('code', {}, `curl --data-binary @in.jpg '${new URL('v1/filters/gaussian?sigma=2', document.baseURI).href}' -o out.jpg`))),
  ...groups.flatMap(([tag, list]) => [h('h2', { class: 'part' }, TITLES[tag] || tag), ...list.map((one) => operation(api, one))]),
  h('h2', { class: 'part', id: 'common' }, 'Parameters that all filters and chains have'), h('section', { class: 'panel' }, parameterTable(api, Object.values(parameters), 'Common parameters')),
  h('h2', { class: 'part', id: 'errors' }, 'Errors'), h('section', { class: 'panel' }, h('p', { class: 'about' }, 'Each is a problem document (RFC 9457), which names what is wrong and what would be right.'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Errors' }, h('table', { class: 'data' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Status'), h('th', { scope: 'col' }, 'Problems'))),
      h('tbody', {}, ...problems.map(([name, { description }]) => h('tr', {}, h('th', { scope: 'row' }, name.replace('Problem', '')), h('td', {}, description))))))),
  h('h2', { class: 'part', id: 'schemas' }, 'Objects'), ...Object.entries(schemas).map(([name, one]) => schema(name, one)));
  if (location.hash.length > 1)
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

/* The contents fold where they would push the text away, also after a choice. */
function foldContents() {
  const fold = find('#fold'), narrow = matchMedia('(max-width: 900px)');
  const show = () => { fold.open = !narrow.matches; };

  narrow.addEventListener('change', show);
  find('#contents').addEventListener('click', show);
  show();
}

async function show() {
  try {
    render(await service.get('openapi.json'));
  } catch (problem) {
    refill(find('#article'), h('h1', {}, 'The API'), h('div', { class: 'panel', role: 'alert' }, `${problem.title}. ${problem.detail}${problem.status === 401 ? ' Enter a token above.' : ''}`));
  }
}

tokenView();
foldContents();
addEventListener('tokenchange', show);
show();
