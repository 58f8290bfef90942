/* The service for JavaScript, in browsers and wherever else there is fetch(). It is at /convolved.js and needs
 * nothing else; docs/api.md has examples.
 *
 *     import { Service } from '…/convolved.js';
 *     const { blob } = await new Service().apply(file, { filter: 'gaussian', sigma: 2 });
 *
 * Every method takes, last, options of fetch(), such as `signal`. They throw a Problem, or
 * fetch()'s error when it is aborted. */
const WAIT = 60; // seconds for which the service is asked to hold an answer
const PAUSE_MIN = 0.25, PAUSE_MAX = 8; // seconds before a request is sent again, at least: doubled each time

/* A refusal of the service, in its words (RFC 9457): title, detail, status, type ('bad-parameter'),
 * parameter and value; retryAfter, in seconds, or null; requestId, as in its log. The status is 0
 * if nobody answers. */
export class Problem extends Error {
  constructor(document, headers = new Headers()) {
    super(document.detail || document.title);
    this.name = 'Problem';
    this.title = document.title;
    this.detail = document.detail || '';
    this.status = document.status || 0;
    this.type = (document.type || '').replace('/problems/', '');
    this.parameter = document.parameter || '';
    this.value = document.value || '';
    this.retryAfter = secondsOf(headers.get('Retry-After'));
    this.requestId = headers.get('X-Request-Id') || '';
  }
}

/* Returns the seconds of a Retry-After, which may be a date. */
function secondsOf(text) {
  if (!text)
    return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/* Returns an answer's problem; one without a document of its own, or with a malformed one, is made
 * from the status. */
async function problemOf(response) {
  const { status, statusText, headers } = response, title = `The answer is ${status} ${statusText}`.trim();
  const document = headers.get('Content-Type')?.startsWith('application/problem+json') ? await response.json().catch(() => null) : null;
  const texts = Object.entries(document ?? {}).filter(([, value]) => typeof value === 'string');
  return new Problem({ title, ...Object.fromEntries(texts), status }, headers);
}

/* Returns the problem of an answer that is not the expected one, such as a page of another
 * server. */
function strange({ status, headers, url }, expected) {
  const detail = `Expected ${expected}, not an answer of type ${headers.get('Content-Type') || '(none)'}: is there a convolved at ${new URL(url).origin}?`;
  return new Problem({ title: 'The answer is not from this service', detail, status }, headers);
}

/* A filtered image: `blob`, and the answer's `headers`. */
export class Result {
  constructor(blob, headers) {
    this.blob = blob;
    this.headers = headers;
  }

  /* {width, height, bands, type} of its pixels. */
  get image() {
    const [size, type] = this.headers.get('X-Image').split(':'), [width, height, bands] = size.split('x').map(Number);
    return { width, height, bands, type };
  }

  /* The losses of its format, such as 'lossy'. */
  get lost() {
    return this.headers.get('X-Lost')?.split(', ') ?? [];
  }

  /* [{name, ms}] of every stage and kernel. */
  get timing() {
    return (this.headers.get('Server-Timing') || '').split(',').map((entry) => {
      const [name, ms] = entry.trim().split(';dur=');
      return { name, ms: Number(ms) || 0 };
    }).filter(({ name }) => name);
  }
}

/* Returns a parameter as text: rows are separated by semicolons, numbers by commas. */
function textOf(value) {
  if (Array.isArray(value))
    return value.map(textOf).join(value.some(Array.isArray) ? ';' : ',');
  return typeof value === 'boolean' ? String(Number(value)) : String(value);
}

function pairsOf(parameters) {
  return Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => [name, textOf(value)]);
}

const withQuery = (path, parameters) => {
  const query = String(new URLSearchParams(pairsOf(parameters)));
  return query ? `${path}?${query}` : path;
};

/* Returns the body of a request: the image alone, or a form if it has a mask or other parts, [[name, text], …]. */
export function bodyOf(image, mask, parts = []) {
  const form = new FormData(), blobOf = (data) => (data instanceof Blob ? data : new Blob([data]));

  if (!mask && !parts.length)
    return image;
  form.append('image', blobOf(image));
  for (const [name, value] of parts)
    form.append(name, value);
  if (mask)
    form.append('mask', blobOf(mask));
  return form;
}

/* Returns target and body of the request for these filters. */
function requestOf(image, filters, { mask, ...parameters }) {
  if (filters.preset)
    return [withQuery(`v1/presets/${encodeURIComponent(filters.preset)}`, parameters), bodyOf(image, mask)];
  if (typeof filters === 'string')
    return [withQuery('v1/chain', { filters, ...parameters }), bodyOf(image, mask)];
  if (!Array.isArray(filters)) {
    const { filter, ...own } = filters;
    return [withQuery(`v1/filters/${encodeURIComponent(filter)}`, { ...own, ...parameters }), bodyOf(image, mask)];
  }
  return ['v1/chain', bodyOf(image, mask, [['chain', JSON.stringify(filters)], ...pairsOf(parameters)])];
}

function pause(seconds, signal) {
  return new Promise((done, fail) => {
    signal?.throwIfAborted();
    const timer = setTimeout(done, 1000 * seconds);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      fail(signal.reason);
    }, { once: true });
  });
}

/* randomUUID() is only there for pages by HTTPS. */
const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-');

const pathOf = (job) => `v1/jobs/${encodeURIComponent(job.id ?? job)}`;

/* A service; by default the one that this module comes from. `patience` is the total of seconds
 * that a request may be told to wait (429, 503); `fetch` sends requests, as fetch() does. */
export class Service {
  constructor(url = new URL('./', import.meta.url), { token = '', patience = 60, fetch = globalThis.fetch } = {}) {
    this.base = new URL(String(url).replace(/\/?$/, '/'));
    this.token = token;
    this.patience = patience;
    this.fetch = fetch;
  }

  async #fetch(target, options) {
    const headers = new Headers(options.headers), { fetch } = this;

    if (this.token)
      headers.set('Authorization', `Bearer ${this.token}`);
    try {
      return await fetch(new URL(target, this.base), { ...options, headers });
    } catch (error) {
      if (options.signal?.aborted)
        throw error;
      throw new Problem({ title: 'The service does not answer', detail: 'It may be restarting, or the network is down.' });
    }
  }

  /* request('v1/filters') → Response. It asks again when the service says so. */
  async request(target, options = {}) {
    for (let until = Date.now() + 1000 * this.patience, least = PAUSE_MIN; ; least = Math.min(2 * least, PAUSE_MAX)) {
      const response = await this.#fetch(target, options);
      if (response.ok)
        return response;
      const problem = await problemOf(response);
      options.signal?.throwIfAborted(); // it may have cut the problem off
      const { status, retryAfter } = problem, wait = Math.max(retryAfter, least);
      if ((status !== 429 && status !== 503) || retryAfter === null || wait === Infinity || Date.now() + 1000 * wait > until)
        throw problem;
      await pause(wait, options.signal);
    }
  }

  /* Returns JSON, such as that of 'v1/filters', 'v1/devices' and 'v1/kernels'. */
  async get(target, options) {
    const response = await this.request(target, options);
    return response.json().catch((error) => {
      throw options?.signal?.aborted ? error : strange(response, 'JSON');
    });
  }

  /* Returns the answer to an image, as a Result. */
  async post(target, body, options) {
    return this.#result(target, { ...options, method: 'POST', body });
  }

  async #result(target, options) {
    const response = await this.request(target, options), { status, headers } = response, blob = await response.blob();
    if (status !== 200 || !blob.size || !headers.has('X-Image') || !/^(image\/|application\/octet-stream$)/.test(headers.get('Content-Type')))
      throw strange(response, 'an image');
    return new Result(blob, headers);
  }

  /* Filters an image: a Blob (a File is one), an ArrayBuffer or a typed array. The filters are one
   * ({filter: 'box', size: 5}), a list of such, the text of a chain ('gaussian=sigma=1.4,sobel'), or the
   * service's own ({preset: 'thumb'}); parameters are {format: 'png', roi: [x, y, width, height], …},
   * and mask is a second image. */
  async apply(image, filters, parameters = {}, options = {}) {
    const [target, body] = requestOf(image, filters, parameters);
    return this.post(target, body, options);
  }

  /* Filters as a job, which goes on in the service: {id, state, progress, …}, for the methods
   * below, which also take an id. If the network fails, it asks once more; by the key it gets the
   * job that the service may have accepted. */
  async submit(image, filters, parameters = {}, options = {}) {
    const [target, body] = requestOf(image, filters, parameters), headers = new Headers(options.headers);
    const ask = () => this.get(target, { ...options, method: 'POST', body, headers });
    headers.set('Prefer', 'respond-async');
    if (!headers.has('Idempotency-Key'))
      headers.set('Idempotency-Key', newKey());
    try {
      return await ask();
    } catch (problem) {
      if (problem.status !== 0)
        throw problem;
    }
    await pause(1, options.signal);
    return ask();
  }

  /* Returns the present state of the job. */
  async job(job, options) {
    return this.get(pathOf(job), options);
  }

  /* Yields the job, again and again while it goes on; the last time it has ended. */
  async* progress(job, options) {
    for await (const { data } of this.events(`${pathOf(job)}/events`, options))
      yield data;
  }

  /* Waits for the end of a job and returns a Result, or throws the problem of its image. */
  async result(job, options) {
    for (let least = PAUSE_MIN; ; least = Math.min(2 * least, PAUSE_MAX)) {
      const asked = Date.now();
      try {
        return await this.#result(`${pathOf(job)}/result?wait=${WAIT}`, options);
      } catch (problem) {
        if (problem.type !== 'not-finished')
          throw problem;
      }
      if (Date.now() - asked < 500 * WAIT) // the service has not waited, or a proxy has answered for it
        await pause(least, options?.signal);
    }
  }

  /* Cancels a job, or forgets one that has ended. */
  async cancel(job, options) {
    await this.request(pathOf(job), { ...options, method: 'DELETE' });
  }

  /* Yields the events of a stream, {event, data}, one after another, until it ends. (EventSource
   * sends no token.) */
  async* events(target, options) {
    const response = await this.request(target, { ...options, headers: { Accept: 'text/event-stream' } });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();

    try {
      for (let text = ''; ;) {
        const { value, done } = await reader.read();
        if (done)
          return;
        text += value;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
          const fields = Object.fromEntries(text.slice(0, end).split('\n').map((line) => line.split(/: ?(.*)/s, 2)));
          if (fields.data)
            yield { event: fields.event, data: JSON.parse(fields.data) };
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }
}
