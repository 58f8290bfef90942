/* The request that the page sends, for the shell and for programs. */
import { service } from './api.js';
import { chainText, parseChain, requestOf } from './chain.js';
import { announce, copy, find } from './dom.js';

const shell = (text) => (/^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const quoted = (text) => JSON.stringify(text);

/* Returns the name of the answer's file: its suffix says the format. */
function outName(image, format) {
  return `out.${format || (/\.(\w+)$/.exec(image)?.[1] ?? 'png').toLowerCase()}`;
}

/* curl takes commas and semicolons as ends of names that are not in quotes. */
const inForm = (name) => (/[",;\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name);

/* Every user of a host can read arguments, but not the output of the shell's own printf. */
function curl({ url, image, mask, out }) {
  return [service.token ? `printf 'Authorization: Bearer %s' "$TOKEN" | curl -H @-` : 'curl', mask ? `-F ${shell(`image=@${inForm(image)}`)} -F mask=@${mask}` : `--data-binary @${shell(image)}`, shell(url), `-o ${shell(out)}`]
    .filter(Boolean).join(' \\\n  ');
}

/* The suffix of its output says the format, and the token is in a file. */
function convolve({ request, chain, image, mask, out }) {
  const own = request.filter ? request.pairs.slice(0, request.pairs.length - request.rest.length) : [];
  const options = [...own, ...request.rest].filter(([name]) => name !== 'format')
    .map(([name, value]) => `--${name} ${shell(value)}`);
  return ['convolve', request.preset ? `@${request.preset}` : request.filter || (chain ? shell(chain) : 'chain'), ...options, mask && `--mask ${mask}`,
    service.base.href !== 'http://localhost:8700/' && `--server ${shell(service.base.href.replace(/\/$/, ''))}`,
    service.token && '--token-file FILE', shell(image), `-o ${shell(out)}`].filter(Boolean).join(' \\\n  ');
}

/* A mask needs a form, which Python's own library does not make, so it is for the package. */
function pythonMasked({ request, links, image, mask, out }) {
  const value = (text) => (String(Number(text)) === text ? text : quoted(text));
  const filters = (chain) => chain.map(({ filter, values }) => `f.${filter}(${Object.entries(values).map(([name, text]) => `${name}=${value(text)}`).join(', ')})`);
  const options = request.rest.map(([name, text]) => `${name}=${name === 'luma' || name === 'chroma' ? `[${filters(parseChain(text)).join(', ')}]` : value(text)}`);
  return `import convolved
from convolved import filters as f

with convolved.Client(${quoted(service.base.href)}${service.token ? ', token=TOKEN' : ''}) as service:
    result = service.apply(
        ${[quoted(image), ...filters(links), ...options, `mask=${quoted(mask)}`].join(', ')})
    result.save(${quoted(out)})
    print(result.timing)`;
}

function python(given) {
  const { url, image, mask, out } = given;
  if (mask)
    return pythonMasked(given);
  const headers = service.token ? ', headers={"Authorization": f"Bearer {TOKEN}"}' : '';
  return `import pathlib
import urllib.request

image = pathlib.Path(${quoted(image)}).read_bytes()
request = urllib.request.Request(
    ${quoted(url)},
    data=image${headers})
with urllib.request.urlopen(request) as answer:
    pathlib.Path(${quoted(out)}).write_bytes(answer.read())
    print(answer.headers["Server-Timing"])`;
}

function javascript({ request, filters, mask }) {
  const parameters = [...(mask ? ['  mask,\n'] : []), ...request.rest.map(([name, value]) => `  ${name}: ${quoted(value)},\n`)].join('');
  return `import { Service } from ${quoted(new URL('convolved.js', service.base).href)};

const service = new Service(${service.token ? `${quoted(service.base.href)}, { token }` : ''});
const { blob, timing } = await service.apply(image, ${request.preset ? `{ preset: ${quoted(request.preset)} }` : quoted(filters)}${parameters && `, {\n${parameters}}`});`;
}

const LANGUAGES = { curl, convolve, Python: python, JavaScript: javascript };

export function codeView(store) {
  const text = find('#code'), tabs = [...document.querySelectorAll('#languages [role=tab]')];

  function show(language) {
    store.set({ language });
  }

  tabs.forEach((tab, i) => {
    tab.addEventListener('click', () => show(tab.dataset.language));
    tab.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const next = step && tabs[(i + step + tabs.length) % tabs.length];
      next?.focus();
      next?.click();
    });
  });
  store.watch((s) => [requestOf(s)?.target, s.common, s.image?.name, Boolean(s.mask), s.language, s.tokens], (s) => {
    const request = requestOf(s), image = s.image?.name || 'in.jpg';
    for (const tab of tabs) {
      const chosen = tab.dataset.language === s.language;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    find('#code-panel').setAttribute('aria-labelledby', `tab-${s.language}`);
    text.textContent = request ? LANGUAGES[s.language]({ request, image, links: s.chain, mask: s.mask && 'mask.png', out: outName(image, s.common.format),
      url: new URL(request.target, service.base).href, chain: Object.fromEntries(request.pairs).filters, filters: chainText(s.chain) }) : 'Add a filter, and the request is here.';
    find('#copy').disabled = !request;
  });
  find('#copy').addEventListener('click', async (event) => {
    const done = await copy(text.textContent, text);
    said(event.currentTarget ?? find('#copy'), done ? 'Copied' : 'Selected');
  });
  find('#link').addEventListener('click', async () => said(find('#link'), (await copy(location.href)) ? `Link copied${store.state.mask ? ', without the mask' : ''}` : 'It is in the address bar'));
}

function said(button, text) {
  const before = button.dataset.text || button.textContent;
  button.dataset.text = before;
  button.textContent = text;
  announce(text);
  setTimeout(() => { button.textContent = before; }, 1500);
}
